/* The first process of a guest kernel, doing what a guest should not: what, stands in the request. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int asked(const char *request, const char *what) { return strstr(request, what) != NULL; }

static void power_off(void) {
    sync();
    reboot(RB_POWER_OFF);
}

int main(void) {
    char request[65536] = {0};
    struct timespec one_second = {1, 0}, now;
    unsigned random[2] = {0, 0};
    FILE *answer;
    int file = open("/request.json", O_RDONLY);

    if (file < 0 || read(file, request, sizeof(request) - 1) < 0)
        return 2;
    if (asked(request, "loop without calls"))
        for (;;)
            ;
    if (asked(request, "loop with calls"))
        for (;;)
            getppid();
    if (asked(request, "sleep for ever"))
        for (;;)
            nanosleep(&one_second, NULL);
    if (asked(request, "panic"))
        return 1;
    if (asked(request, "fill the memory"))
        for (;;) {
            char *part = sbrk(1 << 20);
            if (part == (void *)-1)
                pause();
            memset(part, 1, 1 << 20);
        }
    if (asked(request, "talk"))
        for (unsigned line = 0;; line++)
            printf("line %u of far too many\n", line);
    if (asked(request, "leave without a word"))
        power_off();
    answer = fopen("/answer.json", "w");
    if (answer == NULL)
        return 3;
    if (asked(request, "write half an answer")) {
        fputs("{\"jobs\": [", answer);
    } else {
        if (syscall(SYS_getrandom, random, sizeof(random), 4 /* GRND_INSECURE */) < 0)
            return 4;
        clock_gettime(CLOCK_REALTIME, &now);
        fprintf(answer, "{\"random\": \"%08x%08x\", \"clock_ns\": %lld, \"stack\": \"%p\", \"sees_etc\": %d}",
                random[0], random[1], now.tv_sec * 1000000000LL + now.tv_nsec, (void *)request,
                access("/etc", F_OK) == 0);
    }
    fclose(answer);
    power_off();
    return 0;
}
