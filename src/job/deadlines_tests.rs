use super::*;

const GRACE: Duration = Duration::from_secs(10);

fn at(seconds: u64) -> Moment {
    Moment(Duration::from_secs(seconds))
}

fn deadline(term_at: u64, kill_at: u64) -> Deadline {
    Deadline {
        term_at: at(term_at),
        kill_at: at(kill_at),
    }
}

fn all_due(watch: &mut Deadlines, now: u64) -> Vec<Due> {
    let mut all = Vec::new();
    loop {
        match watch.due(at(now)) {
            Due::Nothing => return all,
            Due::Kill => {
                all.push(Due::Kill);
                return all;
            }
            due => all.push(due),
        }
    }
}

#[test]
fn a_deadline_that_passes_is_a_term_and_then_a_kill() {
    let mut watch = Deadlines::new(Some(deadline(20, 30)));
    assert_eq!(all_due(&mut watch, 19), []);
    assert_eq!(watch.next(), Some(at(20)));
    assert_eq!(all_due(&mut watch, 20), [Due::Expired, Due::Term]);
    assert!(watch.is_thorough());
    assert_eq!(watch.next(), Some(at(30)));
    assert_eq!(all_due(&mut watch, 29), []);
    assert_eq!(all_due(&mut watch, 30), [Due::Kill]);
    assert_eq!(all_due(&mut watch, 31), [Due::Kill]);
}

#[test]
fn a_guard_that_wakes_after_both_deadlines_kills_at_once() {
    let mut watch = Deadlines::new(Some(deadline(20, 30)));
    assert_eq!(all_due(&mut watch, 99), [Due::Expired, Due::Kill]);
}

#[test]
fn a_new_deadline_moves_the_end() {
    let mut watch = Deadlines::new(Some(deadline(20, 30)));
    watch.renew(at(19), deadline(40, 50));
    assert_eq!(all_due(&mut watch, 39), []);
    assert_eq!(all_due(&mut watch, 40), [Due::Expired, Due::Term]);
}

#[test]
fn a_new_deadline_after_the_old_one_comes_too_late() {
    let mut watch = Deadlines::new(Some(deadline(20, 30)));
    watch.renew(at(20), deadline(40, 50));
    assert_eq!(all_due(&mut watch, 20), [Due::Expired, Due::Term]);
    watch.renew(at(21), deadline(40, 50));
    assert_eq!(all_due(&mut watch, 30), [Due::Kill]);
}

#[test]
fn without_a_lease_nothing_is_ever_due() {
    let mut watch = Deadlines::new(None);
    assert_eq!(all_due(&mut watch, 1_000_000), []);
    assert_eq!(watch.next(), None);
}

#[test]
fn an_end_can_only_come_nearer() {
    let mut watch = Deadlines::new(None);
    watch.end(at(30), false);
    watch.end(at(40), false);
    assert_eq!(watch.next(), Some(at(30)));
    watch.end(at(5), false);
    assert_eq!(all_due(&mut watch, 4), []);
    assert!(!watch.is_thorough());
    assert_eq!(all_due(&mut watch, 5), [Due::Kill]);
    assert!(watch.is_thorough());
}

#[test]
fn an_end_leaves_the_deadline_in_force() {
    let mut watch = Deadlines::new(Some(deadline(20, 30)));
    watch.end(at(90), false);
    assert_eq!(all_due(&mut watch, 20), [Due::Expired, Due::Term]);
    assert_eq!(all_due(&mut watch, 30), [Due::Kill]);
}

#[test]
fn the_tree_gets_term_once() {
    let mut watch = Deadlines::new(Some(deadline(20, 30)));
    watch.end(at(15), true);
    assert!(watch.is_thorough());
    assert_eq!(all_due(&mut watch, 1), [Due::Term]);
    watch.end(at(12), true);
    watch.abandon(at(2), GRACE);
    assert!(!watch.end_leftovers(at(3), GRACE));
    assert_eq!(all_due(&mut watch, 3), []);
    assert_eq!(all_due(&mut watch, 12), [Due::Kill]);
}

#[test]
fn an_expiry_is_reported_after_a_term_too() {
    let mut watch = Deadlines::new(Some(deadline(20, 30)));
    watch.end(at(90), true);
    assert_eq!(all_due(&mut watch, 10), [Due::Term]);
    assert_eq!(all_due(&mut watch, 20), [Due::Expired]);
    assert_eq!(all_due(&mut watch, 30), [Due::Kill]);
}

#[test]
fn without_a_supervisor_the_grace_ends_at_the_deadline() {
    let mut watch = Deadlines::new(Some(deadline(20, 25)));
    watch.abandon(at(18), GRACE);
    assert_eq!(all_due(&mut watch, 18), [Due::Term]);
    assert_eq!(all_due(&mut watch, 25), [Due::Expired, Due::Kill]);
    let mut nested = Deadlines::new(None);
    nested.abandon(at(18), GRACE);
    assert_eq!(all_due(&mut nested, 18), [Due::Term]);
    assert_eq!(nested.next(), Some(at(28)));
}

#[test]
fn leftovers_are_killed_after_their_grace() {
    let mut watch = Deadlines::new(None);
    assert!(watch.end_leftovers(at(10), GRACE));
    assert_eq!(all_due(&mut watch, 10), [Due::Term]);
    assert_eq!(all_due(&mut watch, 19), []);
    assert_eq!(all_due(&mut watch, 20), [Due::Kill]);
}

#[test]
fn leftovers_get_their_grace_within_an_ordered_end() {
    let mut watch = Deadlines::new(None);
    watch.end(at(15), false);
    assert!(watch.end_leftovers(at(10), GRACE));
    assert!(!watch.is_thorough());
    assert_eq!(all_due(&mut watch, 10), [Due::Term]);
    assert_eq!(watch.next(), Some(at(15)));
    assert!(!watch.end_leftovers(at(11), GRACE));
}

#[test]
fn a_process_that_is_being_killed_is_no_leftover() {
    let mut watch = Deadlines::new(None);
    watch.end(at(5), false);
    assert_eq!(all_due(&mut watch, 5), [Due::Kill]);
    assert!(!watch.end_leftovers(at(5), GRACE));
    assert_eq!(all_due(&mut watch, 6), [Due::Kill]);
}
