//! The description of how a scheduler holds its requests, for pictures.

use crate::block::request::RequestId;

/// A value of a description. Its unit is in its name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact {
    Number(u64),
    /// A difference, which may be below 0.
    Signed(i64),
    Real(f64),
    Flag(bool),
    Word(&'static str),
}

impl From<u64> for Fact {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Fact {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Fact {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<i64> for Fact {
    fn from(number: i64) -> Self {
        Self::Signed(number)
    }
}

impl From<f64> for Fact {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<bool> for Fact {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&'static str> for Fact {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

/// A scheduler, or a part of one: a list, a queue, a service tree. The words and names are the
/// scheduler's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Holding {
    /// Its kind: `queue`, `sorted`, `fifo` and so on.
    pub kind: &'static str,
    pub facts: Vec<(&'static str, Fact)>,
    /// The requests that it holds itself, in its order. A request may be in several parts: in a
    /// sorted list and in a FIFO.
    pub requests: Vec<RequestId>,
    pub parts: Vec<Self>,
}

impl Holding {
    pub fn new(kind: &'static str) -> Self {
        Self { kind, facts: Vec::new(), requests: Vec::new(), parts: Vec::new() }
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: &'static str, value: impl Into<Fact>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// Adds a fact if there is one to tell.
    #[must_use]
    pub fn fact_if(self, name: &'static str, value: Option<impl Into<Fact>>) -> Self {
        match value {
            Some(value) => self.fact(name, value),
            None => self,
        }
    }

    /// Sets the requests.
    #[must_use]
    pub fn requests(mut self, requests: impl IntoIterator<Item = RequestId>) -> Self {
        self.requests = requests.into_iter().collect();
        self
    }

    /// Adds a part.
    #[must_use]
    pub fn part(mut self, part: Self) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds parts.
    #[must_use]
    pub fn parts(mut self, parts: impl IntoIterator<Item = Self>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// The value of a fact.
    pub fn get(&self, name: &str) -> Option<Fact> {
        self.facts.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    /// All requests, also those of the parts; each as often as it is held.
    pub fn all_requests(&self) -> Vec<RequestId> {
        let mut all = self.requests.clone();
        for part in &self.parts {
            all.extend(part.all_requests());
        }
        all
    }
}
