//! Changes that the page asks for, as JSON.
//!
//! ```json
//! {"kind": "scheduler", "scheduler": "bfq", "tunables": {"slice_idle": "0"}}
//! {"kind": "tunable", "name": "slice_idle", "value": "0"}
//! {"kind": "priority", "task": "reader", "class": "be", "level": 4}
//! {"kind": "group", "group": "fast", "attribute": "io.bfq.weight", "value": "300"}
//! ```

use blksim::live::change::Change;
use serde_json::Value;

/// Reads a change. `None` for one that is not as above, which the page never sends.
pub fn parse(text: &str) -> Option<Change> {
    let value: Value = serde_json::from_str(text).ok()?;
    let word = |name: &str| value[name].as_str().map(str::to_owned);
    match value["kind"].as_str()? {
        "scheduler" => {
            let tunables = value["tunables"].as_object()?.iter();
            let tunables =
                tunables.map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
            let tunables = tunables.collect::<Option<Vec<_>>>()?;
            Some(Change::Scheduler { name: word("scheduler")?, tunables })
        }
        "tunable" => Some(Change::Tunable { name: word("name")?, value: word("value")? }),
        "priority" => {
            let class = match value["class"].as_str()? {
                "rt" => 1,
                // Without a class it follows from nice, and the page's tasks have nice 0.
                "be" | "none" => 2,
                "idle" => 3,
                _ => return None,
            };
            let level = value["level"].as_u64().map(|level| level as u8);
            Some(Change::Priority { job: word("task")?, class, level })
        }
        "group" => Some(Change::Group {
            group: word("group")?,
            attribute: word("attribute")?,
            value: word("value")?,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let tunables = vec![("slice_idle".to_owned(), "0".to_owned())];
        let read =
            parse(r#"{"kind": "scheduler", "scheduler": "bfq", "tunables": {"slice_idle": "0"}}"#);
        assert_eq!(read, Some(Change::Scheduler { name: "bfq".to_owned(), tunables }));
        let read = parse(r#"{"kind": "priority", "task": "reader", "class": "rt", "level": 1}"#);
        let expected = Change::Priority { job: "reader".to_owned(), class: 1, level: Some(1) };
        assert_eq!(read, Some(expected));
        let read = parse(r#"{"kind": "tunable", "name": "slice_idle", "value": "2"}"#);
        let expected = Change::Tunable { name: "slice_idle".to_owned(), value: "2".to_owned() };
        assert_eq!(read, Some(expected));
        assert!(
            parse(r#"{"kind": "group", "group": "a", "attribute": "io.weight", "value": "3"}"#)
                .is_some()
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "{}", r#"{"kind": "paint"}"#, r#"{"kind": "tunable", "name": 3, "value": "2"}"#]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
