//! What both macros read: the struct, its fields and its attributes. Every
//! error message of this crate is here.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Index, LitStr, Member, Path, Result, Type};
use syn::{WhereClause, parse_quote};

/// The struct a macro stands on.
pub(crate) struct Input<'a> {
    pub(crate) item: &'a DeriveInput,
    /// Where pinfeed is: `::pinfeed`, or what `crate = "..."` says.
    pub(crate) pinfeed: Path,
    /// At least one.
    pub(crate) fields: Vec<Field<'a>>,
    pub(crate) style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `struct S { a: A }`
    Named,
    /// `struct S(A);`
    Tuple,
}

pub(crate) struct Field<'a> {
    /// How the struct calls it: `image`, `0`.
    pub(crate) member: Member,
    /// How the batch calls it; `None` in a tuple struct.
    pub(crate) name: Option<LitStr>,
    pub(crate) ty: &'a Type,
}

impl<'a> Input<'a> {
    /// Reads `item` for the derive macro called `derive`.
    pub(crate) fn new(item: &'a DeriveInput, derive: &str) -> Result<Self> {
        let fields = match &item.data {
            Data::Struct(data) => &data.fields,
            Data::Enum(data) => {
                let what = format!(
                    "{derive} can not be derived for an enum: all samples of a batch have the \
                     same fields"
                );
                return Err(Error::new(data.enum_token.span, what));
            }
            Data::Union(data) => {
                let what = format!(
                    "{derive} can not be derived for a union: nothing says which field holds"
                );
                return Err(Error::new(data.union_token.span, what));
            }
        };
        if fields.is_empty() {
            let what = format!("{derive} needs a struct with at least one field");
            return Err(Error::new(item.ident.span(), what));
        }
        let style = match fields {
            Fields::Named(_) => Style::Named,
            Fields::Unnamed(_) | Fields::Unit => Style::Tuple,
        };
        let pinfeed = pinfeed_path(&item.attrs)?.unwrap_or_else(|| parse_quote!(::pinfeed));
        let fields =
            fields.iter().enumerate().map(|(i, f)| Field::new(i, f)).collect::<Result<Vec<_>>>()?;
        for (i, field) in fields.iter().enumerate() {
            let Some(name) = &field.name else { continue };
            let text = name.value();
            if fields[..i].iter().filter_map(|f| f.name.as_ref()).any(|n| n.value() == text) {
                return Err(Error::new(name.span(), format!("two fields are called {text:?}")));
            }
        }
        Ok(Input { item, pinfeed, fields, style })
    }

    /// The struct's where clause, and `bound` for each field type that
    /// mentions a type parameter. What mentions none is checked where it is
    /// used, so that the error stands at the field.
    pub(crate) fn where_clause(&self, bound: &TokenStream) -> Option<WhereClause> {
        let mut generics = self.item.generics.clone();
        let params: Vec<_> = self.item.generics.type_params().map(|p| &p.ident).collect();
        for Field { ty, .. } in &self.fields {
            if mentions(ty.to_token_stream(), &params) {
                generics.make_where_clause().predicates.push(parse_quote!(#ty: #bound));
            }
        }
        generics.where_clause
    }
}

impl<'a> Field<'a> {
    fn new(position: usize, field: &'a syn::Field) -> Result<Self> {
        let ty = &field.ty;
        let rename = rename(&field.attrs)?;
        let Some(ident) = &field.ident else {
            if let Some(name) = rename {
                let what = "the fields of a tuple struct have no names: give the struct named \
                            fields, or leave `rename` out";
                return Err(Error::new(name.span(), what));
            }
            let index = Index { index: position as u32, span: ty.span() };
            return Ok(Field { member: Member::Unnamed(index), name: None, ty });
        };
        let name = rename.unwrap_or_else(|| {
            let span = ident.span().resolved_at(Span::call_site());
            LitStr::new(&ident.unraw().to_string(), span)
        });
        Ok(Field { member: Member::Named(ident.clone()), name: Some(name), ty })
    }

    /// `tokens`, located at the field's type: where an error about a missing
    /// implementation belongs. What they mean stays as it was.
    pub(crate) fn at_type(&self, tokens: TokenStream) -> TokenStream {
        let span = self.ty.span();
        tokens
            .into_iter()
            .map(|mut token| {
                token.set_span(token.span().located_at(span));
                token
            })
            .collect()
    }
}

/// `crate = "..."` of the struct's attributes.
fn pinfeed_path(attrs: &[Attribute]) -> Result<Option<Path>> {
    let mut found = None;
    read(attrs, |meta| {
        if meta.path.is_ident("rename") {
            return Err(meta.error("`rename` belongs on a field"));
        }
        if !meta.path.is_ident("crate") {
            return Err(meta.error("unknown attribute: a struct may have `crate = \"path\"`"));
        }
        let path = meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?;
        set_once(&mut found, path, &meta)
    })?;
    Ok(found)
}

/// `rename = "..."` of a field's attributes.
fn rename(attrs: &[Attribute]) -> Result<Option<LitStr>> {
    let mut found = None;
    read(attrs, |meta| {
        if meta.path.is_ident("crate") {
            return Err(meta.error("`crate` belongs on the struct"));
        }
        if !meta.path.is_ident("rename") {
            return Err(meta.error("unknown attribute: a field may have `rename = \"name\"`"));
        }
        let name: LitStr = meta.value()?.parse()?;
        if name.value().is_empty() {
            return Err(Error::new(name.span(), "a name needs at least one character"));
        }
        set_once(&mut found, name, &meta)
    })?;
    Ok(found)
}

fn read(
    attrs: &[Attribute],
    mut each: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    attrs
        .iter()
        .filter(|a| a.path().is_ident("pinfeed"))
        .try_for_each(|attr| attr.parse_nested_meta(&mut each))
}

fn set_once<T>(place: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("given twice")),
    }
}

/// Is one of `params` among the tokens? A path segment of the same name counts
/// too, wrongly; the bound is then one that holds anyway.
fn mentions(tokens: TokenStream, params: &[&syn::Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => params.contains(&&ident),
        TokenTree::Group(group) => mentions(group.stream(), params),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// An implementation of `of` for the struct.
pub(crate) fn implement(
    input: &Input<'_>,
    of: TokenStream,
    bound: &TokenStream,
    body: TokenStream,
) -> TokenStream {
    let ident = &input.item.ident;
    let where_clause = input.where_clause(bound);
    let (impl_generics, type_generics, _) = input.item.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #of for #ident #type_generics #where_clause {
            #body
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(item: DeriveInput, with: &str) {
        let error = Input::new(&item, "Sample").map(drop).unwrap_err();
        assert_eq!(error.to_string(), with);
    }

    fn read(item: &DeriveInput) -> Input<'_> {
        Input::new(item, "Sample").unwrap()
    }

    fn text(tokens: impl ToTokens) -> String {
        tokens.to_token_stream().to_string()
    }

    #[test]
    fn what_is_no_struct_with_fields_is_refused() {
        refused(
            parse_quote!(
                enum E {
                    A,
                    B(f32),
                }
            ),
            "Sample can not be derived for an enum: all samples of a batch have the same fields",
        );
        refused(
            parse_quote!(union U { a: f32, b: u32 }),
            "Sample can not be derived for a union: nothing says which field holds",
        );
        for empty in ["struct S;", "struct S {}", "struct S();"] {
            refused(
                syn::parse_str(empty).unwrap(),
                "Sample needs a struct with at least one field",
            );
        }
    }

    #[test]
    fn attributes_in_the_wrong_place_are_refused() {
        refused(
            parse_quote!(
                #[pinfeed(rename = "x")]
                struct S {
                    a: f32,
                }
            ),
            "`rename` belongs on a field",
        );
        refused(
            parse_quote!(
                struct S {
                    #[pinfeed(crate = "x")]
                    a: f32,
                }
            ),
            "`crate` belongs on the struct",
        );
        refused(
            parse_quote!(
                struct S(#[pinfeed(rename = "x")] f32);
            ),
            "the fields of a tuple struct have no names: give the struct named fields, or leave \
             `rename` out",
        );
    }

    #[test]
    fn attributes_that_make_no_sense_are_refused() {
        refused(
            parse_quote!(
                #[pinfeed(path = "x")]
                struct S {
                    a: f32,
                }
            ),
            "unknown attribute: a struct may have `crate = \"path\"`",
        );
        refused(
            parse_quote!(
                struct S {
                    #[pinfeed(name = "x")]
                    a: f32,
                }
            ),
            "unknown attribute: a field may have `rename = \"name\"`",
        );
        refused(
            parse_quote!(
                struct S {
                    #[pinfeed(rename = "")]
                    a: f32,
                }
            ),
            "a name needs at least one character",
        );
        refused(
            parse_quote!(
                struct S {
                    #[pinfeed(rename = "b", rename = "c")]
                    a: f32,
                }
            ),
            "given twice",
        );
        refused(
            parse_quote!(
                #[pinfeed(crate = "a")]
                #[pinfeed(crate = "b")]
                struct S {
                    a: f32,
                }
            ),
            "given twice",
        );
        refused(
            parse_quote!(
                struct S {
                    #[pinfeed(rename)]
                    a: f32,
                }
            ),
            "expected `=`",
        );
    }

    #[test]
    fn two_fields_of_one_name_are_refused() {
        refused(
            parse_quote!(
                struct S {
                    a: f32,
                    #[pinfeed(rename = "a")]
                    b: f32,
                }
            ),
            "two fields are called \"a\"",
        );
    }

    #[test]
    fn fields_are_read_in_order_with_their_names() {
        let item = parse_quote!(
            struct S {
                a: f32,
                #[pinfeed(rename = "b b")]
                b: f32,
                r#type: f32,
            }
        );
        let input = read(&item);
        let names: Vec<_> =
            input.fields.iter().map(|f| f.name.as_ref().map(LitStr::value)).collect();
        assert_eq!(names, [Some("a".to_owned()), Some("b b".into()), Some("type".into())]);
        assert_eq!(input.style, Style::Named);
        assert_eq!(text(&input.pinfeed), text(quote!(::pinfeed)));

        let item = parse_quote!(
            #[pinfeed(crate = "crate::inner")]
            struct S(f32, i64);
        );
        let input = read(&item);
        assert!(input.fields.iter().all(|f| f.name.is_none()));
        assert_eq!(input.style, Style::Tuple);
        assert_eq!(text(&input.pinfeed), text(quote!(crate::inner)));
    }

    #[test]
    fn only_types_that_mention_a_parameter_are_bound() {
        let item = parse_quote!(
            struct S<'a, T, U: Copy, const N: usize>
            where
                T: Clone,
            {
                a: Vec<(T, i64)>,
                b: &'a [[U; N]],
                c: [f32; N],
                d: f32,
            }
        );
        let clause = read(&item).where_clause(&quote!(Bound));
        let expected = quote!(where T: Clone, Vec<(T, i64)>: Bound, &'a [[U; N]]: Bound);
        assert_eq!(text(clause), text(expected));
    }
}
