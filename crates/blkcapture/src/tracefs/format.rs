//! The kernel's description of an event (`events/…/format`).

/// Where an event's fields are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLayout {
    pub id: u16,
    fields: Vec<(String, Field)>,
}

/// A field's place in the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub bytes: usize,
    /// A string elsewhere in the event: the field has its place and length.
    pub indirect: bool,
}

impl EventLayout {
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

/// Reads a description: `ID: N`, and a line `field:TYPE NAME; offset:N; size:N; signed:N;` per field.
pub fn parse(text: &str) -> Option<EventLayout> {
    let mut layout = EventLayout::default();
    let mut id = None;
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("ID:") {
            id = number.trim().parse().ok();
        } else if let Some(field) = line.trim_start().strip_prefix("field:") {
            layout.fields.push(field_of(field)?);
        }
    }
    layout.id = id?;
    Some(layout)
}

fn field_of(line: &str) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let number = |prefix: &str, text: Option<&str>| -> Option<usize> {
        text?.strip_prefix(prefix)?.parse().ok()
    };
    let offset = number("offset:", parts.next())?;
    let bytes = number("size:", parts.next())?;
    let name = declaration.rsplit(' ').next()?;
    let name = name.split('[').next()?.to_owned();
    Some((name, Field { offset, bytes, indirect: declaration.starts_with("__data_loc") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_tracepoint() {
        let text = "name: block_rq_issue\nID: 2104\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
            \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\nprint fmt: \"x\"\n";
        let layout = parse(text).unwrap();
        assert_eq!(layout.id, 2104);
        assert_eq!(layout.field("rwbs"), Some(Field { offset: 34, bytes: 10, indirect: false }));
        assert_eq!(layout.field("cmd"), Some(Field { offset: 60, bytes: 4, indirect: true }));
        assert_eq!(layout.field("dev"), None);
        assert_eq!(parse("nonsense"), None);
        assert_eq!(parse("ID: 1\n field:int x; offset:y; size:4;\n"), None);
    }
}
