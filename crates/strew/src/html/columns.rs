//! Rows of JSON as columns: equal fields stand together, and each text is written once. A packed log is half as long so,
//! and a browser reads it in a fraction of the time. `web/src/columns.ts` makes the rows again.
//!
//! The rows are walked over twice, first for the kind of each column, so that no row is kept: a row of JSON takes thirty
//! times the memory of its columns.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Map, Value};

/// A row.
type Row = Map<String, Value>;

/// The rows as columns, without loss: the fields of a row keep their order. `walk` gives all rows, in order, the same
/// each time.
///
/// | field | is |
/// |---|---|
/// | `rows` | their number |
/// | `shapes` | lists of fields |
/// | `shape` | the shape of each row; absent if there is one |
/// | `columns` | by field: the values of the rows that have it, in order |
/// | `parts` | of all tables below: what texts are made of |
///
/// A column is `{"values"}`, or shorter: `{"steps"}` integers as differences from the one before, `{"table"}` objects,
/// `{"words", "at"}` texts by their places among the different ones. Words with spaces are `{"lengths", "by"}`: the number
/// of parts of each, and for each length and position the places of the parts. A pod's name is written once so, however
/// many events are about it. Places are differences, too.
///
/// # Errors
/// That of `walk`.
pub(super) fn table<E>(walk: impl Fn(&mut dyn FnMut(&Row)) -> Result<(), E>) -> Result<Table, E> {
    let mut kinds = Kinds::default();
    walk(&mut |row| kinds.meet(row))?;
    let mut rows = Rows::of(&kinds);
    walk(&mut |row| rows.add(row))?;
    let mut parts = Places::default();
    let mut table = rows.finish(&mut parts);
    table.parts = Some(parts.in_order());
    Ok(table)
}

/// Rows as columns.
#[derive(Serialize)]
pub(super) struct Table {
    rows: usize,
    shapes: Vec<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<usize>>,
    columns: BTreeMap<String, Column>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Box<str>>>,
}

/// The values of a field.
#[derive(Serialize)]
#[serde(untagged)]
enum Column {
    Values { values: Vec<Value> },
    Steps { steps: Vec<i64> },
    Table { table: Table },
    Words { words: Words, at: Vec<i64> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Words {
    Whole(Vec<Box<str>>),
    Divided {
        lengths: Vec<i64>,
        by: BTreeMap<usize, Vec<Vec<i64>>>,
    },
}

/// The kinds of the columns, by field in the order in which they are met.
#[derive(Default)]
struct Kinds {
    fields: Vec<(String, Kind)>,
    places: HashMap<String, usize>,
}

/// What all values of a column are.
enum Kind {
    Text,
    Number,
    Object(Kinds),
    Any,
}

impl Kinds {
    fn meet(&mut self, row: &Row) {
        for (field, value) in row {
            match self.places.get(field) {
                Some(&place) => self.fields[place].1.meet(value),
                None => {
                    self.places.insert(field.clone(), self.fields.len());
                    self.fields.push((field.clone(), Kind::of(value)));
                }
            }
        }
    }
}

impl Kind {
    fn of(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::Text,
            Value::Number(number) if number.is_i64() => Self::Number,
            Value::Object(row) => {
                let mut kinds = Kinds::default();
                kinds.meet(row);
                Self::Object(kinds)
            }
            _ => Self::Any,
        }
    }

    fn meet(&mut self, value: &Value) {
        match (&mut *self, value) {
            (Self::Any, _) | (Self::Text, Value::String(_)) => {}
            (Self::Number, Value::Number(number)) if number.is_i64() => {}
            (Self::Object(kinds), Value::Object(row)) => kinds.meet(row),
            _ => *self = Self::Any,
        }
    }
}

/// The rows so far.
struct Rows {
    places: HashMap<String, usize>,
    columns: Vec<(String, Cells)>,
    shapes: Vec<Vec<String>>,
    shape_of: HashMap<Vec<String>, usize>,
    shape: Vec<usize>,
}

/// The values of a column so far.
enum Cells {
    Texts { words: Places, at: Vec<i64> },
    Numbers(Vec<i64>),
    Objects(Rows),
    Values(Vec<Value>),
}

impl Rows {
    fn of(kinds: &Kinds) -> Self {
        let cells = |(field, kind): &(String, Kind)| (field.clone(), Cells::of(kind));
        Self {
            places: kinds.places.clone(),
            columns: kinds.fields.iter().map(cells).collect(),
            shapes: Vec::new(),
            shape_of: HashMap::new(),
            shape: Vec::new(),
        }
    }

    fn add(&mut self, row: &Row) {
        for (field, value) in row {
            if let Some(&place) = self.places.get(field) {
                self.columns[place].1.add(value);
            }
        }
        let fields: Vec<String> = row.keys().cloned().collect();
        let shape = match self.shape_of.get(&fields) {
            Some(&shape) => shape,
            None => {
                self.shape_of.insert(fields.clone(), self.shapes.len());
                self.shapes.push(fields);
                self.shapes.len() - 1
            }
        };
        self.shape.push(shape);
    }

    fn finish(self, parts: &mut Places) -> Table {
        let columns = self.columns.into_iter();
        let columns = columns.map(|(field, cells)| (field, cells.finish(parts)));
        Table {
            rows: self.shape.len(),
            columns: columns.collect(),
            shape: (self.shapes.len() > 1).then_some(self.shape),
            shapes: self.shapes,
            parts: None,
        }
    }
}

impl Cells {
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Text => Self::Texts {
                words: Places::default(),
                at: Vec::new(),
            },
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Object(kinds) => Self::Objects(Rows::of(kinds)),
            Kind::Any => Self::Values(Vec::new()),
        }
    }

    fn add(&mut self, value: &Value) {
        match self {
            Self::Texts { words, at } => at.push(words.of(value.as_str().unwrap_or_default())),
            Self::Numbers(numbers) => numbers.push(value.as_i64().unwrap_or_default()),
            Self::Objects(rows) => {
                if let Some(row) = value.as_object() {
                    rows.add(row);
                }
            }
            Self::Values(values) => values.push(value.clone()),
        }
    }

    fn finish(self, parts: &mut Places) -> Column {
        match self {
            Self::Texts { words, at } => {
                let words = words.in_order();
                let words = match words.iter().any(|word| word.contains(' ')) {
                    true => divided(&words, parts),
                    false => Words::Whole(words),
                };
                Column::Words {
                    words,
                    at: steps(&at),
                }
            }
            Self::Numbers(numbers) => Column::Steps {
                steps: steps(&numbers),
            },
            Self::Objects(rows) => Column::Table {
                table: rows.finish(parts),
            },
            Self::Values(values) => Column::Values { values },
        }
    }
}

/// Different texts by their places: the order in which they are met.
#[derive(Default)]
struct Places(HashMap<Box<str>, i64>);

impl Places {
    fn of(&mut self, text: &str) -> i64 {
        if let Some(place) = self.0.get(text) {
            return *place;
        }
        let place = self.0.len() as i64;
        self.0.insert(text.into(), place);
        place
    }

    fn in_order(self) -> Vec<Box<str>> {
        let mut all: Vec<(Box<str>, i64)> = self.0.into_iter().collect();
        all.sort_unstable_by_key(|(_, place)| *place);
        all.into_iter().map(|(text, _)| text).collect()
    }
}

/// Texts as the places of their parts, which spaces divide.
fn divided(words: &[Box<str>], parts: &mut Places) -> Words {
    let mut lengths = Vec::new();
    let mut by: BTreeMap<usize, Vec<Vec<i64>>> = BTreeMap::new();
    for word in words {
        let places: Vec<i64> = word.split(' ').map(|part| parts.of(part)).collect();
        let columns = by.entry(places.len());
        let columns = columns.or_insert_with(|| vec![Vec::new(); places.len()]);
        for (column, place) in columns.iter_mut().zip(&places) {
            column.push(*place);
        }
        lengths.push(places.len() as i64);
    }
    for column in by.values_mut().flatten() {
        *column = steps(column);
    }
    Words::Divided {
        lengths: steps(&lengths),
        by,
    }
}

/// Differences from the number before, the first one from 0. JavaScript's integers end at 2^53, far above a log's.
fn steps(numbers: &[i64]) -> Vec<i64> {
    let before = std::iter::once(&0).chain(numbers);
    let pairs = numbers.iter().zip(before);
    pairs
        .map(|(number, before)| number.wrapping_sub(*before))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The slow way back, as the page's script goes it.
    fn rows(table: &Value, parts: &Value) -> Vec<Value> {
        let columns = table["columns"].as_object().unwrap();
        let mut columns: HashMap<&str, std::vec::IntoIter<Value>> = columns
            .iter()
            .map(|(field, column)| (field.as_str(), values(column, parts).into_iter()))
            .collect();
        let n = table["rows"].as_u64().unwrap() as usize;
        let row = |row: usize| {
            let shape = table["shape"].get(row).map_or(0, |s| s.as_u64().unwrap());
            let fields = table["shapes"][shape as usize].as_array().unwrap();
            let fields = fields.iter().map(|field| field.as_str().unwrap());
            let mut of = |field: &str| columns.get_mut(field).unwrap().next().unwrap();
            Value::Object(fields.map(|f| (f.to_owned(), of(f))).collect())
        };
        (0..n).map(row).collect()
    }

    fn values(column: &Value, parts: &Value) -> Vec<Value> {
        if let Some(steps) = column.get("steps") {
            return sums(steps).into_iter().map(Value::from).collect();
        }
        if let Some(words) = column.get("words") {
            let words = match words.as_array() {
                Some(words) => words.clone(),
                None => joined(words, parts),
            };
            let at = sums(&column["at"]);
            return at.iter().map(|at| words[*at as usize].clone()).collect();
        }
        match column.get("table") {
            Some(table) => rows(table, parts),
            None => column["values"].as_array().unwrap().clone(),
        }
    }

    fn joined(words: &Value, parts: &Value) -> Vec<Value> {
        let mut met: HashMap<i64, usize> = HashMap::new();
        let word = |length: i64| {
            let nth = met.entry(length).or_default();
            let columns = words["by"][length.to_string()].as_array().unwrap();
            let places = columns.iter().map(|column| sums(column)[*nth] as usize);
            let texts: Vec<&str> = places.map(|at| parts[at].as_str().unwrap()).collect();
            *nth += 1;
            Value::from(texts.join(" "))
        };
        sums(&words["lengths"]).into_iter().map(word).collect()
    }

    fn sums(steps: &Value) -> Vec<i64> {
        let mut sum = 0;
        let steps = steps.as_array().unwrap().iter();
        let added = steps.map(|step| {
            sum += step.as_i64().unwrap();
            sum
        });
        added.collect()
    }

    #[test]
    fn columns_lose_nothing() {
        let lines = [
            json!({"type": "run", "seed": 7, "deep": [{"a": 1}, null]}),
            json!({"at": "0s", "type": "created", "key": "Pod a", "n": 4, "changed": {"node": "n1"}}),
            json!({"at": "0s", "type": "created", "key": "Pod b", "n": 2, "changed": {}}),
            json!({"type": "updated", "at": "1s", "key": "Pod a", "n": 9, "changed": {"node": null, "x": 1.5}}),
            json!({"at": "1s", "type": "updated", "key": "Pod a  Pod", "n": -3, "rising": true}),
            json!({}),
        ];
        let walk = |take: &mut dyn FnMut(&Row)| {
            lines.iter().filter_map(Value::as_object).for_each(take);
            Ok::<(), ()>(())
        };
        let table = serde_json::to_value(table(walk).unwrap()).unwrap();
        let again: Vec<String> = rows(&table, &table["parts"])
            .iter()
            .map(Value::to_string)
            .collect();
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        assert_eq!(again, lines);
        assert_eq!(
            table["columns"]["type"],
            json!({"words": ["run", "created", "updated"], "at": [0, 1, 0, 1, 0]})
        );
        assert_eq!(
            table["columns"]["key"],
            json!({
                "words": {"lengths": [2, 0, 2], "by": {"2": [[0, 0], [1, 1]], "4": [[0], [1], [3], [0]]}},
                "at": [0, 1, -1, 2]
            })
        );
        assert_eq!(table["parts"], json!(["Pod", "a", "b", ""]));
        assert_eq!(table["columns"]["n"], json!({"steps": [4, -2, 7, -12]}));
    }
}
