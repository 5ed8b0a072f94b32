//! [`Storage`]: who keeps a tensor's bytes alive.

use std::sync::Arc;

use pinfeed_mem::Slot;

use super::Element;

/// The memory that tensors share. It is not written while one of them is left.
#[derive(Clone)]
pub(super) enum Storage {
    /// A slot, or a part of one: the fields of a batch share it.
    Slot(Slot),
    /// Elements that the user gave, kept where they are.
    Owned(Arc<dyn Owner>),
}

impl Storage {
    pub(super) fn owned<T: Element>(values: Vec<T>) -> Self {
        Storage::Owned(Arc::new(values))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Slot(slot) => slot.as_slice(),
            Storage::Owned(owner) => owner.bytes(),
        }
    }
}

/// Elements of some type, whose type the tensor's dtype remembers.
pub(super) trait Owner: Send + Sync {
    fn bytes(&self) -> &[u8];
}

impl<T: Element> Owner for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}
