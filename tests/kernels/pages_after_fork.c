// The first process of a guest that is to show whether a child has the memory of its parent: the entries of an
// io_uring, four consecutive pages, which fork maps as one batch. It prints the page that the child sees in each place.
#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENTRIES 256
#define PAGE_BYTES 4096
#define PAGES (ENTRIES * (int)sizeof(struct io_uring_sqe) / PAGE_BYTES)

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &parameters);
    int *entries = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                        IORING_OFF_SQES);
    if (ring < 0 || entries == MAP_FAILED) printf("no_ring 1\n");
    for (int page = 0; page < PAGES; page++) entries[page * PAGE_BYTES / sizeof(int)] = page + 1;
    if (fork() == 0) {
        for (int page = 0; page < PAGES; page++)
            printf("page_%d %d\n", page + 1, entries[page * PAGE_BYTES / sizeof(int)]);
        _exit(0);
    }
    wait(NULL);
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
