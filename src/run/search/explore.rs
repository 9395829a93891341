//! Breadth-first search, until no new state is found.

use std::collections::{HashMap, VecDeque};

use super::key::Scribe;
use super::steps::Action;
use super::world::World;
use super::{NO_FAULTS, Scenario};

/// The result of a search.
pub(super) struct Found {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// The violated invariant, with the steps that lead to it.
    pub(super) violation: Option<String>,
}

/// Visits every state, unless one violates an invariant.
pub(super) fn search(scenario: &Scenario, at_most: usize) -> Found {
    let mut scribe = Scribe::default();
    let first = World::new(scenario.left, scenario.servers);
    let mut known = HashMap::from([(scribe.key(&first), 0u32)]);
    // The step and the earlier state by which each state was found.
    let mut origins = vec![(0u32, Action::Pass)];
    let mut back: Vec<(u32, u32)> = Vec::new();
    let mut hopeful: Vec<u32> = Vec::new();
    let mut queue = VecDeque::from([(0u32, first)]);
    let mut steps = 0;
    while let Some((from, world)) = queue.pop_front() {
        for action in world.actions(scenario) {
            steps += 1;
            let next = world.after(action, scenario);
            if let Some(violation) = &next.violation {
                let mut path = vec![action];
                let mut at = from;
                while at != 0 {
                    let (before, action) = origins[at as usize];
                    path.push(action);
                    at = before;
                }
                path.reverse();
                let violation = format!("{violation}, after {path:?}");
                return Found {
                    states: known.len(),
                    steps,
                    violation: Some(violation),
                };
            }
            let fresh = u32::try_from(origins.len()).unwrap();
            let to = *known.entry(scribe.key(&next)).or_insert(fresh);
            if !action.is_fault() {
                if next.granted {
                    hopeful.push(from);
                }
                back.push((to, from));
            }
            if to == fresh {
                origins.push((from, action));
                queue.push_back((fresh, next));
            }
        }
        if known.len() > at_most {
            let violation = Some(format!("more than {at_most} states"));
            return Found {
                states: known.len(),
                steps,
                violation,
            };
        }
    }
    // Without further sessions there are no further grants.
    let stuck = if scenario.left.starts == NO_FAULTS.starts {
        stuck(origins.len(), back, hopeful)
    } else {
        0
    };
    Found {
        states: known.len(),
        steps,
        violation: (stuck > 0).then(|| format!("{stuck} states lead to no grant")),
    }
}

/// How many states lead to no grant by any sequence of steps without faults.
fn stuck(states: usize, mut back: Vec<(u32, u32)>, hopeful: Vec<u32>) -> usize {
    back.sort_unstable();
    let mut hope = vec![false; states];
    let mut queue = hopeful;
    while let Some(state) = queue.pop() {
        if std::mem::replace(&mut hope[state as usize], true) {
            continue;
        }
        let start = back.partition_point(|(to, _)| *to < state);
        let edges = back[start..].iter().take_while(|(to, _)| *to == state);
        queue.extend(edges.map(|(_, from)| *from));
    }
    hope.iter().filter(|hope| !**hope).count()
}
