// The first process of a guest that is to show what the kernel's instruments do. It prints one figure a line.
// It is called with "clock", or with "spin": then it computes for ever in two processes.
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_NS 100000
#define POLLING_NS 10000000

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_on_timer(int timer, long nanoseconds) {
    struct itimerspec when = {.it_value.tv_nsec = nanoseconds};
    unsigned long long expirations;
    timerfd_settime(timer, 0, &when, NULL);
    if (read(timer, &expirations, sizeof(expirations)) != sizeof(expirations)) printf("no_timer 1\n");
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1 && strcmp(arguments[1], "spin") == 0) {
        if (fork()) printf("spinning\n");
        for (;;) { }
    }
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    sleep_on_timer(timer, TIMEOUT_NS);  // from here on at a moment of our own
    long long before = now();
    for (int i = 0; i < 1000; i++) now();
    printf("thousand_readings_ns %lld\n", now() - before);

    before = now();
    sleep_on_timer(timer, TIMEOUT_NS);
    printf("timeout_ns %lld\n", now() - before);

    // As fio sleeps: a last microsecond, in sleeps of next to nothing, each timed in whole microseconds.
    long sleeps = 0;
    do {
        before = now();
        sleep_on_timer(timer, 1);
        sleeps++;
    } while ((now() - before) / 1000 < 1);
    printf("shortest_sleeps %ld\n", sleeps);

    sleep_on_timer(timer, TIMEOUT_NS);
    before = now();
    long readings = 0;
    while (now() - before < POLLING_NS) readings++;
    printf("polling_ns %lld\n", now() - before);
    printf("polling_readings %ld\n", readings);

    // Polling does not leave the clock coarse behind it.
    before = now();
    sleep_on_timer(timer, TIMEOUT_NS);
    printf("timeout_after_polling_ns %lld\n", now() - before);
    fflush(stdout);
    reboot(RB_POWER_OFF);
    return 1;
}
