//! What `#[derive(FromBatch)]` expands to.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result};

use crate::input::{Field, Input, Style, implement};

pub(crate) fn expand(item: &DeriveInput) -> Result<TokenStream> {
    let input = Input::new(item, "FromBatch")?;
    let pinfeed = &input.pinfeed;
    let from_field = quote!(#pinfeed::FromField);
    let count = input.fields.len();
    let checked = (input.style == Style::Tuple).then(|| quote!(batch.expect_fields(#count)?;));
    let values = input.fields.iter().enumerate().map(|(position, field)| {
        let Field { member, name, ty } = field;
        let found = match name {
            Some(name) => quote!(batch.field(#name)?),
            None => quote!(batch.field_at(#position)?),
        };
        let from_field = field.at_type(quote!(#from_field));
        quote!(#member: <#ty as #from_field>::from_field(#found)?)
    });
    let body = quote! {
        type Error = #pinfeed::Error;

        fn try_from(batch: #pinfeed::Batch) -> #pinfeed::Result<Self> {
            #checked
            ::core::result::Result::Ok(Self { #(#values),* })
        }
    };
    let of = quote!(::core::convert::TryFrom<#pinfeed::Batch>);
    Ok(implement(&input, of, &from_field, body))
}
