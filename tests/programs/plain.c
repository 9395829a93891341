/* Runs plain processes, one at a time, until its input ends; then it prints how late the latest of them was, in ns.
 * They are in the session of the test, as what it times is: where the kernel divides the processor by sessions
 * (autogroup), a session of their own would get more of it.
 * Each sleeps, then computes for some milliseconds, as a short run does. What it computes is not late. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
#define SLEEP (20 * MS)
#define COMPUTE (3 * MS)

static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static long long ns(struct timeval time) {
    return (time.tv_sec * 1000000LL + time.tv_usec) * 1000;
}

static void live(void) {
    struct timespec time = {0, SLEEP};
    nanosleep(&time, NULL);
    while (now(CLOCK_PROCESS_CPUTIME_ID) < COMPUTE)
        ;
    _exit(0);
}

static long long lateness(void) {
    long long begun = now(CLOCK_MONOTONIC);
    struct rusage used;
    int child = fork();
    if (child == 0)
        live();
    if (child < 0 || wait4(child, NULL, 0, &used) != child) {
        perror("plain");
        exit(1);
    }
    long long took = now(CLOCK_MONOTONIC) - begun;
    return took - SLEEP - ns(used.ru_utime) - ns(used.ru_stime);
}

int main(void) {
    struct pollfd input = {0, POLLIN, 0};
    long long latest = 0;
    do {
        long long late = lateness();
        latest = late > latest ? late : latest;
    } while (poll(&input, 1, 0) == 0);
    printf("%lld\n", latest);
    return 0;
}
