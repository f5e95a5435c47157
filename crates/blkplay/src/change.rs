//! Changes that the page asks for: those of [`blksim_json::change`], in the page's words.
//!
//! ```json
//! {"kind": "priority", "task": "reader", "class": "none", "level": 4}
//! ```

use blksim::live::change::Change;
use serde_json::Value;

/// Reads a change. `None` for one that is not as above, which the page never sends.
pub fn parse(text: &str) -> Option<Change> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let fields = value.as_object_mut()?;
    if let Some(task) = fields.remove("task") {
        fields.insert("job".to_owned(), task);
    }
    // Without a class it follows from nice, and the page's tasks have nice 0.
    if let Some(class) = fields.get_mut("class").filter(|class| *class == "none") {
        *class = "be".into();
    }
    blksim_json::change(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_words_are_understood() {
        for (word, class) in [("none", 2), ("be", 2), ("rt", 1), ("idle", 3)] {
            let text = format!(
                r#"{{"kind": "priority", "task": "reader", "class": "{word}", "level": 5}}"#
            );
            let expected = Change::Priority { job: "reader".to_owned(), class, level: Some(5) };
            assert_eq!(parse(&text), Some(expected));
        }
        let read = parse(r#"{"kind": "tunable", "name": "slice_idle", "value": "2"}"#);
        let expected = Change::Tunable { name: "slice_idle".to_owned(), value: "2".to_owned() };
        assert_eq!(read, Some(expected));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "{}", "[]", r#"{"kind": "paint"}"#] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
