//! The jobs, from their start to the end of the last of their processes.

use super::happening::What;
use super::world::World;
use crate::run::event::Event;
use crate::run::model::Job;
use crate::sys::wait::Status;

impl World {
    pub(super) fn start_job(&mut self, process: usize, late: bool) {
        if late {
            self.violated(format!("p{process}'s job was started too late"));
        }
        self.tally.jobs += 1;
        let one_fails_in = self.jobs_last.map_or(5, |(_, _, one_in)| one_in);
        let code = i32::from(self.dice.one_in(one_fails_in));
        self.processes[process].run.job = Some(Job::started(Status::Exited(code)));
        self.with_jobs.insert(process);
        self.ran.push(process);
        let length = if let Some((least, most, _)) = self.jobs_last {
            self.dice.within(least, most)
        } else if self.dice.one_in(3) {
            self.dice.within(10_000, 120_000)
        } else {
            self.dice.within(10, 5_000)
        };
        self.after(length, What::JobEnds(process));
        self.tell(process, Event::JobStarted);
    }

    /// TERM: a job may take its time, or ignore it.
    pub(super) fn term(&mut self, process: usize) {
        let job = self.processes[process].run.job.as_mut();
        if !job.is_some_and(Job::term) {
            return;
        }
        if !self.dice.one_in(4) {
            let delay = self.dice.within(1, 3_000);
            self.after(delay, What::JobEnds(process));
        }
    }

    pub(super) fn job_ends(&mut self, process: usize) {
        let node = self.processes[process].node;
        if self.nodes[node].suspended {
            return self.after(1_000, What::JobEnds(process));
        }
        let exited = self.processes[process].run.exit();
        let Some(Event::JobExited { status, forced }) = exited else {
            return;
        };
        self.say(|| format!("p{process}'s job ends: {status:?}, forced: {forced}"));
        self.tally.successes += u64::from(status == Status::Exited(0) && !forced);
        let leftovers = self.dice.one_in(4);
        if leftovers {
            let delay = self.dice.within(1, 1_000);
            self.after(delay, What::TreeEnds(process));
        }
        self.tell(process, Event::JobExited { status, forced });
        if !leftovers {
            self.tree_ends(process);
        }
        self.plan(process);
    }

    pub(super) fn killed(&mut self, process: usize) {
        if !self.processes[process].run.job_alive() {
            return;
        }
        if let Some(exited) = self.processes[process].run.kill() {
            self.tell(process, exited);
        }
        self.tree_ends(process);
    }

    pub(super) fn tree_ends(&mut self, process: usize) {
        let node = self.processes[process].node;
        if self.nodes[node].suspended {
            return self.after(1_000, What::TreeEnds(process));
        }
        let run = &mut self.processes[process].run;
        if run.job.take().is_none() {
            return;
        }
        run.guard = None;
        self.say(|| format!("p{process}'s tree is gone"));
        self.tell(process, Event::TreeGone);
        self.plan(process);
    }
}
