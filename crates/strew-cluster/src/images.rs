//! The number of nodes with each image.
//!
//! Source: `pkg/scheduler/backend/cache/cache.go` (image states), v1.36.3; spec/scheduler §3.11.

use rustc_hash::FxHashMap;
use strew_model::{Holds, Marks, Symbol};

/// An image name that nodes report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageState {
    /// Bytes, as first seen for that name.
    pub size: i64,
    /// The number of nodes that have it.
    pub nodes: u32,
}

/// All image names that nodes report.
#[derive(Debug, Clone, Default)]
pub struct Images {
    by_name: FxHashMap<Symbol, ImageState>,
}

impl Images {
    /// The state of an image name; `None` if no node has it.
    pub fn get(&self, name: Symbol) -> Option<ImageState> {
        self.by_name.get(&name).copied()
    }

    /// True if no node has an image.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn add(&mut self, images: &[(Symbol, i64)]) {
        for &(name, size) in images {
            let state = self
                .by_name
                .entry(name)
                .or_insert(ImageState { size, nodes: 0 });
            state.nodes += 1;
        }
    }

    pub(crate) fn remove(&mut self, images: &[(Symbol, i64)]) {
        for &(name, _) in images {
            if let Some(state) = self.by_name.get_mut(&name) {
                state.nodes -= 1;
                if state.nodes == 0 {
                    self.by_name.remove(&name);
                }
            }
        }
    }
}

impl Holds for Images {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        for name in self.by_name.keys() {
            name.mark(marks);
        }
    }
}
