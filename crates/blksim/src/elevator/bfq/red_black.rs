//! A red-black tree whose shape matters.
//!
//! Two searches of bfq stop at the first suitable node on the way down, so their results depend on
//! how the kernel's red-black trees (`lib/rbtree.c`) are balanced. This one follows the same rules.
//! Nodes are numbers; the caller keeps their links, one set for all trees that never hold a number
//! at the same time.

/// No node.
pub(super) const NIL: u32 = u32::MAX;

/// The place of a node in its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    pub parent: u32,
    /// Children: the one before and the one after.
    pub child: [u32; 2],
    red: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self { parent: NIL, child: [NIL; 2], red: false }
    }
}

/// Indices of [`Links::child`].
pub(super) const BEFORE: usize = 0;
pub(super) const AFTER: usize = 1;

#[derive(Debug, Clone)]
pub(super) struct RedBlack {
    pub root: u32,
}

impl Default for RedBlack {
    fn default() -> Self {
        Self { root: NIL }
    }
}

impl RedBlack {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// Adds a node at the leaf to which `goes_before` leads.
    pub fn insert(&mut self, links: &mut [Links], id: u32, goes_before: impl Fn(u32) -> bool) {
        let (mut parent, mut at, mut side) = (NIL, self.root, BEFORE);
        while at != NIL {
            parent = at;
            side = if goes_before(at) { BEFORE } else { AFTER };
            at = links[at as usize].child[side];
        }
        self.link(links, id, parent, side);
    }

    /// Adds a node below another that has no child on that side.
    pub fn link(&mut self, links: &mut [Links], id: u32, parent: u32, side: usize) {
        links[id as usize] = Links { parent, child: [NIL; 2], red: true };
        if parent == NIL {
            self.root = id;
        } else {
            links[parent as usize].child[side] = id;
        }
        self.balance_insertion(links, id);
    }

    fn balance_insertion(&mut self, links: &mut [Links], added: u32) {
        let mut node = added;
        loop {
            let parent = links[node as usize].parent;
            if parent == NIL {
                links[node as usize].red = false;
                return;
            }
            if !links[parent as usize].red {
                return;
            }
            // A red node is never the root.
            let grandparent = links[parent as usize].parent;
            let side = side_of(links, grandparent, parent);
            let uncle = links[grandparent as usize].child[1 - side];
            if is_red(links, uncle) {
                links[uncle as usize].red = false;
                links[parent as usize].red = false;
                links[grandparent as usize].red = true;
                node = grandparent;
                continue;
            }
            let mut upper = parent;
            if side_of(links, parent, node) != side {
                self.rotate(links, parent, side);
                upper = node;
            }
            links[upper as usize].red = false;
            links[grandparent as usize].red = true;
            self.rotate(links, grandparent, 1 - side);
            return;
        }
    }

    /// Moves a node down to `side`; its child of the other side takes its place.
    fn rotate(&mut self, links: &mut [Links], node: u32, side: usize) {
        let up = links[node as usize].child[1 - side];
        let moved = links[up as usize].child[side];
        links[node as usize].child[1 - side] = moved;
        if moved != NIL {
            links[moved as usize].parent = node;
        }
        self.replace(links, node, up);
        links[up as usize].child[side] = node;
        links[node as usize].parent = up;
    }

    /// Replaces a node below its parent by another node, or none.
    fn replace(&mut self, links: &mut [Links], old: u32, new: u32) {
        let parent = links[old as usize].parent;
        if parent == NIL {
            self.root = new;
        } else {
            let side = side_of(links, parent, old);
            links[parent as usize].child[side] = new;
        }
        if new != NIL {
            links[new as usize].parent = parent;
        }
    }

    /// Takes a node out.
    pub fn remove(&mut self, links: &mut [Links], id: u32) {
        let Links { child: [before, after], mut red, .. } = links[id as usize];
        let (rest, mut parent, side);
        if before == NIL || after == NIL {
            rest = if before == NIL { after } else { before };
            parent = links[id as usize].parent;
            side = if parent == NIL { BEFORE } else { side_of(links, parent, id) };
            self.replace(links, id, rest);
        } else {
            // What follows it takes its place.
            let heir = first_below(links, after);
            rest = links[heir as usize].child[AFTER];
            let heir_red = links[heir as usize].red;
            parent = links[heir as usize].parent;
            if parent == id {
                parent = heir;
                side = AFTER;
            } else {
                side = BEFORE;
                self.replace(links, heir, rest);
                links[heir as usize].child[AFTER] = after;
                links[after as usize].parent = heir;
            }
            self.replace(links, id, heir);
            links[heir as usize].child[BEFORE] = before;
            links[before as usize].parent = heir;
            links[heir as usize].red = red;
            red = heir_red;
        }
        if !red {
            self.balance_removal(links, rest, parent, side);
        }
        links[id as usize] = Links::default();
    }

    /// Repairs the paths through `node`, on `side` of `parent`, which lack a black node.
    fn balance_removal(&mut self, links: &mut [Links], node: u32, parent: u32, side: usize) {
        let (mut node, mut parent, mut side) = (node, parent, side);
        while parent != NIL && !is_red(links, node) {
            let mut sibling = links[parent as usize].child[1 - side];
            if is_red(links, sibling) {
                links[sibling as usize].red = false;
                links[parent as usize].red = true;
                self.rotate(links, parent, side);
                sibling = links[parent as usize].child[1 - side];
            }
            let [near, far] = [side, 1 - side].map(|side| links[sibling as usize].child[side]);
            if !is_red(links, near) && !is_red(links, far) {
                links[sibling as usize].red = true;
                node = parent;
                parent = links[node as usize].parent;
                if parent != NIL {
                    side = side_of(links, parent, node);
                }
                continue;
            }
            if !is_red(links, far) {
                links[near as usize].red = false;
                links[sibling as usize].red = true;
                self.rotate(links, sibling, 1 - side);
                sibling = near;
            }
            links[sibling as usize].red = links[parent as usize].red;
            links[parent as usize].red = false;
            let far = links[sibling as usize].child[1 - side];
            links[far as usize].red = false;
            self.rotate(links, parent, side);
            return;
        }
        if node != NIL {
            links[node as usize].red = false;
        }
    }

    /// The neighbour of a node on one side.
    pub fn neighbour(links: &[Links], id: u32, side: usize) -> u32 {
        let child = links[id as usize].child[side];
        if child != NIL {
            return last_below(links, child, 1 - side);
        }
        let mut node = id;
        loop {
            let parent = links[node as usize].parent;
            if parent == NIL || side_of(links, parent, node) != side {
                return parent;
            }
            node = parent;
        }
    }

    /// The lowest node; [`NIL`] if there is none.
    #[cfg(test)]
    fn first(&self, links: &[Links]) -> u32 {
        if self.root == NIL { NIL } else { first_below(links, self.root) }
    }
}

fn is_red(links: &[Links], id: u32) -> bool {
    id != NIL && links[id as usize].red
}

fn side_of(links: &[Links], parent: u32, child: u32) -> usize {
    usize::from(links[parent as usize].child[BEFORE] != child)
}

fn first_below(links: &[Links], id: u32) -> u32 {
    last_below(links, id, BEFORE)
}

/// The last node on one side of a subtree.
fn last_below(links: &[Links], id: u32, side: usize) -> u32 {
    let mut node = id;
    while links[node as usize].child[side] != NIL {
        node = links[node as usize].child[side];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Stream;

    /// Black nodes on each path down; checks order of links and colours.
    fn black_height(links: &[Links], id: u32, parent: u32) -> u32 {
        if id == NIL {
            return 1;
        }
        let node = links[id as usize];
        assert_eq!(node.parent, parent);
        assert!(!(node.red && is_red(links, parent)), "red below red");
        let heights = node.child.map(|child| black_height(links, child, id));
        assert_eq!(heights[0], heights[1]);
        heights[0] + u32::from(!node.red)
    }

    #[test]
    fn it_stays_ordered_and_balanced() {
        let mut rng = Stream::named(7, "red-black");
        let mut tree = RedBlack::default();
        let mut links = vec![Links::default(); 300];
        let mut keys = vec![0_u64; 300];
        let mut inside: Vec<u32> = Vec::new();
        for _ in 0..4000 {
            let id = rng.below(300) as u32;
            if let Some(place) = inside.iter().position(|other| *other == id) {
                inside.remove(place);
                tree.remove(&mut links, id);
            } else {
                keys[id as usize] = rng.below(50);
                let key = keys[id as usize];
                let place = inside.partition_point(|other| keys[*other as usize] <= key);
                inside.insert(place, id);
                tree.insert(&mut links, id, |other| keys[other as usize] > key);
            }
            black_height(&links, tree.root, NIL);
            let mut found = Vec::new();
            let mut at = tree.first(&links);
            while at != NIL {
                found.push(at);
                at = RedBlack::neighbour(&links, at, AFTER);
            }
            assert_eq!(found, inside);
        }
    }

    #[test]
    fn its_shape_is_that_of_the_kernel() {
        // 1 to 7 in order: 2 above 1 and 4; 4 above 3 and 6; 6 above 5 and 7.
        let mut tree = RedBlack::default();
        let mut links = vec![Links::default(); 8];
        for id in 1..8 {
            tree.insert(&mut links, id, |other| other > id);
        }
        let children = |id: u32| links[id as usize].child;
        assert_eq!(tree.root, 2);
        assert_eq!([children(2), children(4), children(6)], [[1, 4], [3, 6], [5, 7]]);
    }
}
