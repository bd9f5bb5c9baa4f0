//! What a schema says of each field, as far as the check needs it, read from a [table of fields](super::fields).

use super::fields::{FieldTable, KINDS};

/// The shapes of one kind, a view into its table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema {
    shapes: &'static [Shape],
    root: ShapeId,
    /// True if a list may not contain `null` instead of an object: custom resources are checked before they are
    /// decoded.
    refuses_null: bool,
}

/// Index of a shape in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeId(pub(super) usize);

/// The form of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// Any value.
    Any,
    Boolean,
    String,
    /// A string in RFC 3339.
    Timestamp,
    Int32,
    Int64,
    Number,
    /// A number or a string, as `cpu: 1` and `cpu: 500m`.
    Quantity,
    IntOrString,
    List(ShapeId),
    Map(ShapeId),
    Object(Fields),
}

/// The fields of an object.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// In the order of their names.
    pub(super) by_name: Vec<(&'static str, ShapeId)>,
    /// Required times: k8s-openapi has no zero value for times.
    pub(super) required_times: Vec<&'static str>,
    pub(super) is_resource: bool,
}

impl Fields {
    /// The field, with the table's copy of its name.
    pub(super) fn get(&self, name: &str) -> Option<(&'static str, ShapeId)> {
        let at = self
            .by_name
            .binary_search_by(|(known, _)| (*known).cmp(name));
        Some(self.by_name[at.ok()?])
    }

    /// True for a whole Kubernetes object, as in `volumeClaimTemplates`.
    pub(super) fn is_resource(&self) -> bool {
        self.is_resource
    }

    pub(super) fn required_times(&self) -> &[&'static str] {
        &self.required_times
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        self.by_name.iter().map(|(name, _)| *name)
    }
}

impl Schema {
    /// The schema of a kind, or of a part such as `LabelSelector`, in the table of all kinds.
    pub(super) fn of(name: &str) -> Self {
        Self::of_table(&KINDS, name)
    }

    /// The schema with this name in `table`.
    ///
    /// # Panics
    /// The table has no such schema: both are part of strew.
    pub(super) fn of_table(table: &'static FieldTable, name: &str) -> Self {
        let root = table.root(name);
        Self {
            shapes: table.shapes(),
            root: root.unwrap_or_else(|| {
                panic!("the table of fields lacks {name}: run `cargo xtask gen`")
            }),
            refuses_null: name.starts_with(crate::ocm::GROUP),
        }
    }

    pub(super) fn refuses_null(self) -> bool {
        self.refuses_null
    }

    pub(super) fn root(self) -> ShapeId {
        self.root
    }

    pub(super) fn shape(self, id: ShapeId) -> &'static Shape {
        &self.shapes[id.0]
    }

    /// The path of a field `name` in the nearest object below the root that has one: where a misplaced field belongs.
    /// `None` if no object has it, or several equally near ones. A status is not written by hand, so it is ignored.
    pub(super) fn home_of(self, name: &str) -> Option<String> {
        let mut seen = vec![false; self.shapes.len()];
        let mut level = vec![(self.root, String::new())];
        while !level.is_empty() {
            let mut homes = Vec::new();
            let mut below = Vec::new();
            for (id, path) in &level {
                match self.shape(*id) {
                    Shape::Object(fields) => {
                        if fields.get(name).is_some() {
                            homes.push(format!("{path}{name}"));
                        }
                        let children = fields.by_name.iter().filter(|(name, _)| *name != "status");
                        below.extend(children.map(|(name, id)| (*id, format!("{path}{name}."))));
                    }
                    Shape::List(element) => {
                        let path = path.strip_suffix('.').unwrap_or(path);
                        below.push((*element, format!("{path}[].")));
                    }
                    _ => {}
                }
            }
            match homes.len() {
                0 => {}
                1 => return homes.pop(),
                _ => return None,
            }
            // Only now: a shape that occurs twice on one level makes the answer ambiguous.
            for (id, _) in &level {
                seen[id.0] = true;
            }
            below.retain(|(id, _)| !seen[id.0]);
            level = below;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_where_a_field_belongs() {
        let schema = Schema::of("apps/v1 Deployment");
        let cases = [
            (
                "topologySpreadConstraints",
                Some("spec.template.spec.topologySpreadConstraints"),
            ),
            (
                "maxSkew",
                Some("spec.template.spec.topologySpreadConstraints[].maxSkew"),
            ),
            ("replicas", Some("spec.replicas")),
            ("image", None),
            ("nonsense", None),
        ];
        for (name, home) in cases {
            assert_eq!(schema.home_of(name).as_deref(), home, "{name}");
        }
    }
}
