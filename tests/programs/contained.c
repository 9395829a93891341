/* A job in a container where there is nothing else: it says who it is, leaves orphans that
 * end at once, and cleans up when it is asked to end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void asked(int number) {
    static const char text[] = "job: cleaned up\n";
    (void)number;
    _exit(write(2, text, sizeof text - 1) == sizeof text - 1 ? 9 : 1);
}

int main(int count, char **words) {
    struct sigaction action = {.sa_handler = asked};
    sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (fork() == 0)
                usleep(20000);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    fprintf(stderr, "job: begun %s %s %s as %d:%d\n", getenv("TOKENRUN_CLIENT_ID"),
            getenv("TOKENRUN_GRANT"), count > 1 ? words[1] : "", getuid(), getgid());
    for (;;)
        pause();
}
