//! Rows of JSON as columns: equal fields stand together, and each text is written once. A packed log is half as long so,
//! and a browser reads it in a fraction of the time. `web/src/columns.ts` makes the rows again.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// The rows as columns, without loss: the fields of a row keep their order.
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
pub(super) fn table<'v>(rows: impl IntoIterator<Item = &'v Map<String, Value>>) -> Value {
    let mut parts = Places::default();
    let mut table = columns(rows, &mut parts);
    table["parts"] = json!(parts.all);
    table
}

/// Different texts in the order in which they are met.
#[derive(Default)]
struct Places<'v> {
    all: Vec<&'v str>,
    known: HashMap<&'v str, i64>,
}

impl<'v> Places<'v> {
    fn of(&mut self, text: &'v str) -> i64 {
        let all = &mut self.all;
        *self.known.entry(text).or_insert_with(|| {
            all.push(text);
            all.len() as i64 - 1
        })
    }
}

fn columns<'v>(
    rows: impl IntoIterator<Item = &'v Map<String, Value>>,
    parts: &mut Places<'v>,
) -> Value {
    let mut shapes: Vec<Vec<&str>> = Vec::new();
    let mut places: HashMap<Vec<&str>, usize> = HashMap::new();
    let mut shape = Vec::new();
    let mut fields: Map<String, Value> = Map::new();
    let mut columns: Vec<(&str, Vec<&Value>)> = Vec::new();
    let mut of_field: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        for (field, value) in row {
            let column = *of_field.entry(field).or_insert_with(|| {
                columns.push((field, Vec::new()));
                columns.len() - 1
            });
            columns[column].1.push(value);
        }
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        let place = *places.entry(names).or_insert_with_key(|names| {
            shapes.push(names.clone());
            shapes.len() - 1
        });
        shape.push(place);
    }
    for (field, values) in columns {
        fields.insert(field.to_owned(), column(&values, parts));
    }
    let mut table = json!({"rows": shape.len(), "shapes": shapes, "columns": fields});
    if shapes.len() > 1 {
        table["shape"] = json!(shape);
    }
    table
}

/// The values of one field.
fn column<'v>(values: &[&'v Value], parts: &mut Places<'v>) -> Value {
    if let Some(found) = all(values, Value::as_str) {
        return texts(found, parts);
    }
    if let Some(numbers) = all(values, Value::as_i64) {
        return json!({"steps": steps(&numbers)});
    }
    if let Some(objects) = all(values, Value::as_object) {
        return json!({"table": columns(objects, parts)});
    }
    json!({"values": values})
}

/// All values as what `of` makes of them; `None` if one is something else.
fn all<'v, T>(values: &[&'v Value], of: impl Fn(&'v Value) -> Option<T>) -> Option<Vec<T>> {
    values.iter().map(|value| of(value)).collect()
}

/// Texts by their places among the different ones.
fn texts<'v>(texts: Vec<&'v str>, parts: &mut Places<'v>) -> Value {
    let mut words = Places::default();
    let at: Vec<i64> = texts.into_iter().map(|text| words.of(text)).collect();
    let words = match words.all.iter().any(|word| word.contains(' ')) {
        true => divided(&words.all, parts),
        false => json!(words.all),
    };
    json!({"words": words, "at": steps(&at)})
}

/// Texts as the places of their parts, which spaces divide.
fn divided<'v>(words: &[&'v str], parts: &mut Places<'v>) -> Value {
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
    let by = by.into_iter().map(|(length, columns)| {
        let columns: Vec<Vec<i64>> = columns.iter().map(|places| steps(places)).collect();
        (length.to_string(), json!(columns))
    });
    json!({"lengths": steps(&lengths), "by": by.collect::<Map<_, _>>()})
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
        let table = table(lines.iter().filter_map(Value::as_object));
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
