/*
 * Jobs that do not want to end. Each ignores TERM, and writes a byte to stdout when it
 * does. Those that fork without end begin when they are asked to end, because they use
 * up pids, and other tests know some by heart; with a third word (now) they begin at once.
 *
 * unruly chain N    N processes, each forks and leaves, and so does its child, for ever
 * unruly hydra N    N pairs in sessions of their own: a process that sees its parent or its
 *                   child die forks two in its place
 * unruly waker N    N processes that go on waking each other up with CONT, and fork
 * unruly litter N   N loops that each leave orphans which end at once, for others to
 *                   reap; they begin at once
 * unruly storm N    forks, and so does every child, as long as fewer than N live
 * unruly tracer     a process that lets its traced child run whatever it is sent
 * unruly odd        descendants that clear their parent-death signal, send no signal
 *                   when they die, close all descriptors, or leave by vfork
 * unruly tree N     N processes: some nested, some in sessions of their own, some
 *                   orphans, some stopped
 * unruly root FILE  set-user-ID root: becomes root, writes its pid to FILE, and stays
 * unruly blind      after a TERM takes its parent's right to open files, leaves a child,
 *                   and ends
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void stay(void) {
    for (;;)
        pause();
}

/* A process that fails to do its part must not look like one that was ended. */
static void must(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(99);
    }
}

static void ready(int out) {
    must(write(out, "r", 1) == 1, "write");
}

static void chain(int n) {
    for (int i = 1; i < n && fork() > 0; i++)
        ;
    for (;;)
        if (fork() > 0)
            _exit(0);
}

static void sprout(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGUSR1);
            return;
        }
}

static void hydra(int n) {
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            struct sigaction action = {.sa_handler = sprout, .sa_flags = SA_NODEFER};
            sigaction(SIGCHLD, &action, NULL);
            sigaction(SIGUSR1, &action, NULL);
            setsid();
            if (fork() == 0)
                prctl(PR_SET_PDEATHSIG, SIGUSR1);
            stay();
        }
    stay();
}

static void waker(int n) {
    setsid();
    for (int i = 1; i < n && fork() > 0; i++)
        ;
    for (;;) {
        kill(0, SIGCONT);
        if (fork() == 0)
            _exit(0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

static void litter(int n) {
    for (int i = 1; i < n && fork() > 0; i++)
        ;
    for (;;) {
        int child = fork();
        if (child == 0) {
            fork();
            _exit(0);
        }
        if (child > 0)
            waitpid(child, NULL, 0);
    }
}

static void storm(int n) {
    /* Counts births, and the deaths that somebody has seen. */
    int *alive = mmap(NULL, sizeof *alive, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(alive != MAP_FAILED, "mmap");
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            __atomic_sub_fetch(alive, 1, __ATOMIC_RELAXED);
        if (__atomic_add_fetch(alive, 1, __ATOMIC_RELAXED) >= n || fork() < 0)
            __atomic_sub_fetch(alive, 1, __ATOMIC_RELAXED);
    }
}

static void tracer(void) {
    int child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        for (;;) {
            if (fork() == 0)
                _exit(0);
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        }
    }
    for (;;) {
        int status;
        /* Whatever it was sent is not delivered. */
        if (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
            ptrace(PTRACE_CONT, child, 0, 0);
    }
}

static void odd(void) {
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        prctl(PR_SET_DUMPABLE, 0);
        stay();
    }
    if (syscall(SYS_clone, 0, 0, 0, 0, 0) == 0) {
        if (syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0) == 0)
            stay();
        stay();
    }
    if (fork() == 0) {
        setsid();
        if (fork() > 0)
            _exit(0);
        close_range(0, ~0U, 0);
        stay();
    }
    if (fork() == 0) {
        if (vfork() == 0)
            stay();
        stay();
    }
    if (fork() == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0) {
            if (fork() > 0)
                _exit(0);
            stay();
        }
        stay();
    }
    setpriority(PRIO_PROCESS, 0, 19);
    stay();
}

/* Each the child of the one before. */
static void nest(int n, int out) {
    if (n > 0 && fork() == 0) {
        ready(out);
        nest(n - 1, out);
        stay();
    }
}

static void tree(int n) {
    int pipes[2], others = n - 1;
    char byte;
    must(pipe(pipes) == 0, "pipe");
    nest(others / 5, pipes[1]);
    for (int i = others / 5; i < others; i++) {
        int child = fork();
        if (child > 0) {
            if (i % 4 == 0)
                waitpid(child, NULL, 0);
            continue;
        }
        if (i % 4 == 0 && fork() > 0)
            _exit(0);
        if (i % 4 == 1)
            setsid();
        ready(pipes[1]);
        if (i % 4 == 2)
            raise(SIGSTOP);
        stay();
    }
    for (int i = 0; i < others; i++)
        must(read(pipes[0], &byte, 1) == 1, "read");
    ready(1);
    stay();
}

static void root(const char *file) {
    must(setresuid(0, 0, 0) == 0, "setresuid");
    FILE *out = fopen(file, "w");
    must(out != NULL, "fopen");
    fprintf(out, "%d\n", getpid());
    fclose(out);
    stay();
}

static void blind(void) {
    struct rlimit none = {0, 0};
    must(prlimit(getppid(), RLIMIT_NOFILE, &none, NULL) == 0, "prlimit");
    if (fork() > 0)
        _exit(0);
    setsid();
    stay();
}

static void until_asked(void) {
    sigset_t term;
    int which;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    ready(1);
    must(sigwait(&term, &which) == 0, "sigwait");
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "";
    const char *word = count > 2 ? words[2] : "1";
    if (*mode && strchr("bchsw", *mode) && count < 4)
        until_asked();
    signal(SIGTERM, SIG_IGN);
    if (!strcmp(mode, "tracer") || !strcmp(mode, "odd"))
        ready(1);
    if (!strcmp(mode, "chain"))
        chain(atoi(word));
    if (!strcmp(mode, "hydra"))
        hydra(atoi(word));
    if (!strcmp(mode, "waker"))
        waker(atoi(word));
    if (!strcmp(mode, "litter"))
        litter(atoi(word));
    if (!strcmp(mode, "storm"))
        storm(atoi(word));
    if (!strcmp(mode, "tracer"))
        tracer();
    if (!strcmp(mode, "odd"))
        odd();
    if (!strcmp(mode, "tree"))
        tree(atoi(word));
    if (!strcmp(mode, "root"))
        root(word);
    if (!strcmp(mode, "blind"))
        blind();
    fprintf(stderr, "unruly: what?\n");
    return 99;
}
