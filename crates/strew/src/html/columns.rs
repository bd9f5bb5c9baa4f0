//! Rows of JSON as columns: equal fields stand together, and each text is written once. A packed log is half as long so,
//! and a browser reads it in a fraction of the time. `web/src/columns.ts` makes the rows again.

use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The rows as columns, without loss: the fields of a row keep their order.
///
/// | field | is |
/// |---|---|
/// | `rows` | their number |
/// | `shapes` | lists of fields |
/// | `shape` | the shape of each row; absent if there is one |
/// | `columns` | by field: the values of the rows that have it, in order |
///
/// A column is `{"values"}`, or shorter: `{"words", "at"}` texts by their places among the different ones, `{"steps"}`
/// integers as differences from the one before (in `at`, too), `{"table"}` objects.
pub(super) fn table<'v>(rows: impl IntoIterator<Item = &'v Map<String, Value>>) -> Value {
    let mut shapes: Vec<Vec<&str>> = Vec::new();
    let mut places: HashMap<Vec<&str>, usize> = HashMap::new();
    let mut shape = Vec::new();
    let mut columns: Vec<(&str, Vec<&Value>)> = Vec::new();
    let mut of_field: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        let fields: Vec<&str> = row.keys().map(String::as_str).collect();
        for (field, value) in row {
            let column = *of_field.entry(field).or_insert_with(|| {
                columns.push((field, Vec::new()));
                columns.len() - 1
            });
            columns[column].1.push(value);
        }
        let place = *places.entry(fields).or_insert_with_key(|fields| {
            shapes.push(fields.clone());
            shapes.len() - 1
        });
        shape.push(place as i64);
    }
    let columns = columns
        .into_iter()
        .map(|(field, values)| (field.to_owned(), column(&values)));
    let columns: Map<String, Value> = columns.collect();
    let mut table = json!({"rows": shape.len(), "shapes": shapes, "columns": columns});
    if shapes.len() > 1 {
        table["shape"] = json!(shape);
    }
    table
}

/// The values of one field.
fn column(values: &[&Value]) -> Value {
    if let Some(words) = all(values, Value::as_str) {
        return texts(&words);
    }
    if let Some(numbers) = all(values, Value::as_i64) {
        return json!({"steps": steps(&numbers)});
    }
    if let Some(objects) = all(values, Value::as_object) {
        return json!({"table": table(objects)});
    }
    json!({"values": values})
}

/// All values as what `of` makes of them; `None` if one is something else.
fn all<'v, T>(values: &[&'v Value], of: impl Fn(&'v Value) -> Option<T>) -> Option<Vec<T>> {
    values.iter().map(|value| of(value)).collect()
}

/// Texts by their places among the different ones.
fn texts(texts: &[&str]) -> Value {
    let mut words: Vec<&str> = Vec::new();
    let mut places: HashMap<&str, i64> = HashMap::new();
    let at: Vec<i64> = texts
        .iter()
        .map(|text| {
            *places.entry(text).or_insert_with(|| {
                words.push(text);
                words.len() as i64 - 1
            })
        })
        .collect();
    json!({"words": words, "at": steps(&at)})
}

/// Differences from the number before, the first one from 0. JavaScript's integers end at 2^53, far above a log's.
fn steps(numbers: &[i64]) -> Vec<i64> {
    let before = std::iter::once(&0).chain(numbers);
    numbers
        .iter()
        .zip(before)
        .map(|(number, before)| number.wrapping_sub(*before))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow way back, as the page's script goes it.
    fn rows(table: &Value) -> Vec<Value> {
        let columns = table["columns"].as_object().unwrap();
        let mut columns: HashMap<&str, std::vec::IntoIter<Value>> = columns
            .iter()
            .map(|(field, column)| (field.as_str(), values(column).into_iter()))
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

    fn values(column: &Value) -> Vec<Value> {
        let sums = |steps: &Value| {
            let mut sum = 0;
            let mut add = |step: &Value| {
                sum += step.as_i64().unwrap();
                sum
            };
            let steps = steps.as_array().unwrap();
            steps.iter().map(&mut add).collect::<Vec<i64>>()
        };
        if let Some(steps) = column.get("steps") {
            return sums(steps).into_iter().map(Value::from).collect();
        }
        if let Some(words) = column.get("words") {
            let at = sums(&column["at"]);
            return at.iter().map(|at| words[*at as usize].clone()).collect();
        }
        match column.get("table") {
            Some(table) => rows(table),
            None => column["values"].as_array().unwrap().clone(),
        }
    }

    #[test]
    fn columns_lose_nothing() {
        let lines = [
            json!({"type": "run", "seed": 7, "deep": [{"a": 1}, null]}),
            json!({"at": "0s", "type": "created", "key": "Pod a", "n": 4, "changed": {"node": "n1"}}),
            json!({"at": "0s", "type": "created", "key": "Pod b", "n": 2, "changed": {}}),
            json!({"type": "updated", "at": "1s", "key": "Pod a", "n": 9, "changed": {"node": null, "x": 1.5}}),
            json!({"at": "1s", "type": "updated", "key": "Pod b", "n": -3, "rising": true}),
            json!({}),
        ];
        let table = table(lines.iter().filter_map(Value::as_object));
        let again: Vec<String> = rows(&table).iter().map(Value::to_string).collect();
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        assert_eq!(again, lines);
        assert_eq!(
            table["columns"]["key"],
            json!({"words": ["Pod a", "Pod b"], "at": [0, 1, -1, 1]})
        );
        assert_eq!(table["columns"]["n"], json!({"steps": [4, -2, 7, -12]}));
    }
}
