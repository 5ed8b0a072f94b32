//! What `#[derive(Sample)]` expands to.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result};

use crate::input::{Field, Input, implement};

pub(crate) fn expand(item: &DeriveInput) -> Result<TokenStream> {
    let input = Input::new(item, "Sample")?;
    let pinfeed = &input.pinfeed;
    let sample = quote!(#pinfeed::Sample);
    let writes = input.fields.iter().map(|field| {
        let Field { member, name, .. } = field;
        let name = name.iter();
        let write = field.at_type(quote!(#sample::write));
        let this = field.at_type(quote!(&self.));
        quote! {
            #(row.named(#name);)*
            #write(#this #member, row)?;
        }
    });
    let body = quote! {
        fn write(&self, row: &mut #pinfeed::Row<'_>) -> #pinfeed::Result<()> {
            #(#writes)*
            ::core::result::Result::Ok(())
        }
    };
    Ok(implement(&input, sample.clone(), &sample, body))
}
