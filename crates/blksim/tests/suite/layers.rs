//! The floor plan of the crate: the order of its rooms, the size of import circles, and the rule
//! that only the elevators name schedulers.
//!
//! A file belongs to the longest entry of [`LAYERS`] that its path begins with. It may use files
//! of its own layer and of the layers listed before it. Circles are found among files: an import
//! of a name that a `mod.rs` passes on counts as an import of that `mod.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom to the top.
const LAYERS: &[&[&str]] = &[
    // Time, random numbers, parameters.
    &["core"],
    // The request, which everything passes on.
    &[
        "block/request",
        "block/request_stage",
        "block/sbitmap",
        "block/extent_index",
        "block/kernel_version",
        "block/per_hctx",
        "block/queue_facts",
        "block/queue_usage",
    ],
    &["task/ready", "timeline"],
    // What a device does, and what a job wants.
    &["devices"],
    &["workload"],
    &["block/cgroup"],
    // Who decides what goes next. Neither knows the other.
    &["elevator"],
    &["rqos"],
    // The queue between them; it knows tasks by number only.
    &["block"],
    &["mm"],
    &["task"],
    &["machine_parameters"],
    &["machine"],
    // Ways through the machine that cross its parts (`impl Machine`). Nothing but the machine
    // calls them, and nothing imports them.
    &[
        "block/array",
        "block/complete",
        "block/submit",
        "mm/flusher",
        "mm/page_reads",
        "task/buffered",
        "task/compute",
        "task/direct",
        "task/io_wq",
        "task/issue",
        "task/replayed",
        "task/run",
        "task/sync",
    ],
    &["engine"],
    &["simulate"],
    &["switchback"],
    &["live"],
];

/// Pairs of layers that must not meet although one is below the other.
const APART: &[(&str, &str)] = &[("rqos", "elevator"), ("workload", "devices")];

/// No circle of imports is larger.
const LARGEST_CIRCLE: usize = 5;

struct Source {
    /// Below `src`, without `.rs` and `/mod`.
    module: String,
    path: PathBuf,
    lines: Vec<String>,
}

struct Import {
    line: usize,
    module: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(&root).unwrap().with_extension("");
                let module = below.to_str().unwrap().replace('\\', "/");
                let module = module.strip_suffix("/mod").unwrap_or(&module).to_owned();
                let text = fs::read_to_string(&path).unwrap();
                // Unit tests may look further.
                let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
                let lines = text[..end].lines().map(str::to_owned).collect();
                found.push(Source { module, path, lines });
            }
        }
    }
    found.sort_by(|a, b| a.module.cmp(&b.module));
    found
}

/// A line without its comment and its string literals.
fn code(line: &str) -> String {
    let line = line.split("//").next().unwrap_or_default();
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// Takes `{a, b::{c, d}}` apart.
fn flatten(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        paths.push(format!("{prefix}{tree}"));
        return;
    };
    let prefix = format!("{prefix}{}", &tree[..open]);
    let inner = &tree[open + 1..tree.rfind('}').unwrap()];
    let (mut depth, mut from) = (0, 0);
    for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[from..at].trim().is_empty() {
                    flatten(&prefix, &inner[from..at], paths);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// Every `crate::…` and `super::…` of a file, and every `use` of a folder's own modules, as the
/// module of the crate that it leads to.
fn imports(source: &Source, modules: &BTreeSet<&str>) -> Vec<Import> {
    let is_folder = source.path.ends_with("mod.rs") || source.module == "lib";
    let mut found = Vec::new();
    let mut number = 0;
    while number < source.lines.len() {
        let first = number;
        let mut text = code(&source.lines[number]);
        if text.trim_start().contains("use ") {
            while !text.contains(';') && number + 1 < source.lines.len() {
                number += 1;
                text.push_str(&code(&source.lines[number]));
            }
        }
        number += 1;
        let mut paths = Vec::new();
        for start in ["crate::", "super::"] {
            for (at, _) in text.match_indices(start) {
                let before = text[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                    continue;
                }
                let rest = &text[at..];
                let end = if text.contains("use ") {
                    rest.find(';').unwrap_or(rest.len())
                } else {
                    rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':')))
                        .unwrap_or(rest.len())
                };
                flatten("", &rest[..end], &mut paths);
            }
        }
        if let Some((_, path)) = text.split_once("use ").filter(|_| is_folder) {
            let child = path.split([':', ';']).next().unwrap_or_default().trim();
            let module = format!("{}/{child}", source.module);
            if modules.contains(module.as_str()) {
                found.push(Import { line: first + 1, module });
            }
        }
        for path in paths {
            let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
            let mut base: Vec<&str> = Vec::new();
            if parts[0] == "super" {
                base = source.module.split('/').collect();
                if !is_folder {
                    base.pop();
                    parts.remove(0);
                }
                while parts.first() == Some(&"super") {
                    base.pop();
                    parts.remove(0);
                }
            } else {
                parts.remove(0);
            }
            base.extend(parts);
            while !base.is_empty() && !modules.contains(base.join("/").as_str()) {
                base.pop();
            }
            let module = base.join("/");
            if !module.is_empty() && module != source.module {
                found.push(Import { line: first + 1, module });
            }
        }
    }
    found
}

/// Number and entry of a module's layer.
fn layer(module: &str) -> Option<(usize, &'static str)> {
    let entries = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(number, entries)| entries.iter().map(move |entry| (number, *entry)));
    entries
        .filter(|(_, entry)| {
            module.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
        .max_by_key(|(_, entry)| entry.len())
}

fn is_inside(room: &str, module: &str) -> bool {
    module == room || module.starts_with(&format!("{room}/"))
}

#[test]
fn rooms_use_only_rooms_below_them() {
    let sources = sources();
    let modules: BTreeSet<&str> = sources.iter().map(|source| source.module.as_str()).collect();
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| source.module != "lib") {
        let place = |line| format!("{}:{line}", source.path.display());
        let Some((own, _)) = layer(&source.module) else {
            wrong.push(format!("{}: LAYERS has no entry for this file", place(1)));
            continue;
        };
        for import in imports(source, &modules) {
            // A folder's own mod.rs lists what is in it.
            let lists = is_inside(&source.module, &import.module);
            let Some((other, entry)) = layer(&import.module) else { continue };
            if other > own && !lists {
                wrong.push(format!(
                    "{}: {} is below {entry} and must not use {}",
                    place(import.line),
                    source.module,
                    import.module
                ));
            }
            for (a, b) in APART {
                if is_inside(a, &source.module) && is_inside(b, &import.module) {
                    wrong.push(format!("{}: {a} must not use {b}", place(import.line)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Files that reach each other by imports, the largest such set first (Kosaraju's two passes).
fn circles(edges: &BTreeMap<&str, BTreeSet<String>>) -> Vec<Vec<String>> {
    fn visit<'a>(
        from: &'a str,
        edges: &BTreeMap<&'a str, BTreeSet<&'a str>>,
        seen: &mut BTreeSet<&'a str>,
        order: &mut Vec<&'a str>,
    ) {
        if seen.insert(from) {
            for to in edges.get(from).into_iter().flatten() {
                visit(to, edges, seen, order);
            }
            order.push(from);
        }
    }
    let mut forth: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut back: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, targets) in edges {
        for to in targets {
            forth.entry(from).or_default().insert(to);
            back.entry(to).or_default().insert(from);
        }
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for from in edges.keys() {
        visit(from, &forth, &mut seen, &mut order);
    }
    seen.clear();
    let mut found = Vec::new();
    for from in order.into_iter().rev() {
        let mut members = Vec::new();
        visit(from, &back, &mut seen, &mut members);
        if members.len() > 1 {
            found.push(members.into_iter().map(str::to_owned).collect::<Vec<_>>());
        }
    }
    found.sort_by_key(|members| std::cmp::Reverse(members.len()));
    found
}

#[test]
fn no_circle_of_imports_is_large() {
    let sources = sources();
    let modules: BTreeSet<&str> = sources.iter().map(|source| source.module.as_str()).collect();
    let edges = sources
        .iter()
        .filter(|source| source.module != "lib")
        .map(|source| {
            let targets = imports(source, &modules).into_iter().map(|import| import.module);
            (source.module.as_str(), targets.collect())
        })
        .collect();
    for members in circles(&edges) {
        assert!(
            members.len() <= LARGEST_CIRCLE,
            "{} files use each other in a circle, which may have {LARGEST_CIRCLE}; import from \
             the file that defines a name, or move what they share below them: {}",
            members.len(),
            members.join(", ")
        );
    }
}

#[test]
fn only_the_elevators_name_schedulers() {
    let names: Vec<String> =
        blksim::elevator::ALL.iter().map(|info| format!("\"{}\"", info.name)).collect();
    // The same word, for something else: "none" as an array's level, a piece of advice.
    let allowed = [("devices/raid", "\"none\""), ("workload", "\"none\"")];
    let mut wrong = Vec::new();
    for source in sources() {
        if is_inside("elevator", &source.module) {
            continue;
        }
        for (number, line) in source.lines.iter().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            for name in names.iter().filter(|name| line.contains(*name)) {
                let fine =
                    |(room, word): &(&str, &str)| is_inside(room, &source.module) && word == name;
                if !allowed.iter().any(fine) {
                    wrong.push(format!(
                        "{}:{}: names the scheduler {name}; put what tells it apart into its Info",
                        source.path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn files_of_schedulers_are_formatted() {
    // `cargo fmt` does not see them: their modules are declared by a macro.
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = sources().into_iter().filter(|source| is_inside("elevator", &source.module));
    let mut command = std::process::Command::new("rustfmt");
    command.args(["--check", "--edition", "2024", "--config-path"]).arg(&config);
    command.args(files.map(|source| source.path));
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!(
            "run `rustfmt --edition 2024 --config-path . $(find crates/blksim/src/elevator -name '*.rs')`:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => println!("skipped: rustfmt cannot be run ({error})"),
    }
}
