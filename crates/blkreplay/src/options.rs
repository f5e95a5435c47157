//! Choices: the device, the pace, and the places of a replay.

/// The pace of I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// [`Kind::Closed`] if the recording has completions, otherwise [`Kind::Open`].
    #[default]
    Automatic,
    /// An I/O waits for those that its task had waited for, and for the think time.
    Closed,
    /// An I/O is issued at its recorded time, whatever the disk does.
    Open,
}

/// Where in the file the I/Os go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleTo {
    /// Touched places stay whole and in order; gaps shrink alike until all fits into twice the bytes
    /// touched.
    #[default]
    Automatic,
    /// The same, until all fits into so many bytes.
    Bytes(u64),
    /// Without any gaps.
    Touched,
    /// The recorded addresses.
    Recorded,
}

/// All of this.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// For messages: the recording's name.
    pub source: String,
    pub kind: Kind,
    /// Think times and recorded times are divided by this.
    pub speed: f64,
    pub scale_to: ScaleTo,
    /// Name of the device; needed if the recording has several.
    pub device: Option<String>,
}

impl Options {
    /// The defaults.
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            kind: Kind::default(),
            speed: 1.0,
            scale_to: ScaleTo::default(),
            device: None,
        }
    }

    /// A recorded time at the replay's speed.
    pub(crate) fn paced_ns(&self, ns: u64) -> u64 {
        if (self.speed - 1.0).abs() < f64::EPSILON { ns } else { (ns as f64 / self.speed) as u64 }
    }
}
