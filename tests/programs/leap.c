/* A library for LD_PRELOAD: the wall clock of a program is off by as many seconds as the file LEAP says
 * at that moment. libfaketime cannot do this to a program with jemalloc. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t leap(void)
{
	char text[32] = { 0 };
	const char *name = getenv("LEAP");
	int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;

	if (file < 0)
		return 0;
	if (read(file, text, sizeof text - 1) < 0)
		text[0] = 0;
	close(file);
	return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int done = syscall(SYS_clock_gettime, clock, now);

	if (!done && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += leap();
	return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	int done = clock_gettime(CLOCK_REALTIME, &precise);

	(void)zone;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return done;
}

time_t time(time_t *now)
{
	struct timespec precise;

	clock_gettime(CLOCK_REALTIME, &precise);
	if (now)
		*now = precise.tv_sec;
	return precise.tv_sec;
}
