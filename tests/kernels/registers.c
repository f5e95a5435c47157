// The first process of a guest that is to show that a program keeps its floating-point registers, and a thread
// its own memory, whatever happens meanwhile. For each of several events it prints how often all was as it should be,
// "kept EVENT TIMES"; what was not, as "lost EVENT". It runs as any other process, too.
#include <errno.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define ROUNDS 400
#define MOST_MEMBERS 4
// All exceptions masked, as always, but rounding up; and of x87 in single precision.
#define MXCSR_USUAL 0x1f80
#define MXCSR 0x5f80
#define X87_CONTROL_USUAL 0x37f
#define X87_CONTROL 0x87f

struct registers {
    unsigned char vector[16][32];  // 0: only the lower halves count where there is no AVX
    double x87;                    // 512
    uint32_t mxcsr;                // 520
    uint32_t x87_control;          // 524
};

struct call {
    long number, first, second, third, fourth;  // 0, 8, 16, 24, 32
    struct registers *child;  // 40: the child stores its registers here, and ends
    char *touched;            // 48: written to after the call
    long has_avx;             // 56
};

// Loads the registers, makes the system call, and stores the registers; returns what the call did.
long hold(const struct registers *before, struct registers *after, const struct call *call);
asm(".text\n"
    ".macro move instruction register\n"
    "  .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
    "  \\instruction \\register, \\number\n"
    "  .endr\n"
    ".endm\n"
    ".macro load width, number\n  load_\\width \\number\n.endm\n"
    ".macro load_wide base, number\n  vmovdqu 32*\\number(%\\base), %ymm\\number\n.endm\n"
    ".macro load_narrow base, number\n  movdqu 32*\\number(%\\base), %xmm\\number\n.endm\n"
    ".macro store_wide base, number\n  vmovdqu %ymm\\number, 32*\\number(%\\base)\n.endm\n"
    ".macro store_narrow base, number\n  movdqu %xmm\\number, 32*\\number(%\\base)\n.endm\n"
    ".macro store_all base\n"
    "  testq %r15, %r15\n"
    "  jz 1f\n"
    "  move store_wide \\base\n"
    "  jmp 2f\n"
    "1: move store_narrow \\base\n"
    "2: fstpl 512(%\\base)\n"
    "  stmxcsr 520(%\\base)\n"
    "  fnstcw 524(%\\base)\n"
    ".endm\n"
    "hold:\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsi, %r12\n"
    "  movq %rdx, %r13\n"
    "  movq 40(%r13), %r14\n"
    "  movq 56(%r13), %r15\n"
    "  testq %r15, %r15\n"
    "  jz 1f\n"
    "  move load_wide rdi\n"
    "  jmp 2f\n"
    "1: move load_narrow rdi\n"
    "2: fldcw 524(%rdi)\n"
    "  ldmxcsr 520(%rdi)\n"
    "  fldl 512(%rdi)\n"
    "  movq 0(%r13), %rax\n"
    "  movq 8(%r13), %rdi\n"
    "  movq 16(%r13), %rsi\n"
    "  movq 24(%r13), %rdx\n"
    "  movq 32(%r13), %r10\n"
    "  syscall\n"
    "  testq %rax, %rax\n"
    "  jnz 3f\n"
    "  testq %r14, %r14\n"
    "  jz 3f\n"
    "  store_all r14\n"
    "  pcmpeqd %xmm0, %xmm0\n"  // something else for the parent not to find
    "  pcmpeqd %xmm7, %xmm7\n"
    "  movl $60, %eax\n"  // exit
    "  xorl %edi, %edi\n"
    "  syscall\n"
    "3: movq 48(%r13), %rdx\n"
    "  testq %rdx, %rdx\n"
    "  jz 4f\n"
    "  movb $1, (%rdx)\n"
    "4: store_all r12\n"
    "  fninit\n"
    "  movl $0x1f80, -8(%rsp)\n"
    "  ldmxcsr -8(%rsp)\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  ret\n");

static long has_avx;
static long *kept, *lost;  // shared by all processes, of the present event

static struct registers pattern(int seed) {
    struct registers made;
    memset(&made, 0, sizeof(made));
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 32; j++) made.vector[i][j] = seed * 37 + i * 32 + j + 1;
    made.x87 = seed + 0.5;
    made.mxcsr = MXCSR;
    made.x87_control = X87_CONTROL;
    return made;
}

static void check(const struct registers *before, const struct registers *after) {
    int same = before->x87 == after->x87 && before->mxcsr == after->mxcsr;
    same &= before->x87_control == (after->x87_control & 0xffff);
    for (int i = 0; i < 16; i++)
        same &= memcmp(before->vector[i], after->vector[i], has_avx ? 32 : 16) == 0;
    __atomic_fetch_add(same ? kept : lost, 1, __ATOMIC_SEQ_CST);
}

static void expect(int true_one) { __atomic_fetch_add(true_one ? kept : lost, 1, __ATOMIC_SEQ_CST); }

// Makes a call with a pattern in the registers, and checks that it is there afterwards.
static long keep(int seed, struct call call) {
    struct registers before = pattern(seed), after;
    memset(&after, 0, sizeof(after));
    call.has_avx = has_avx;
    long result = hold(&before, &after, &call);
    check(&before, &after);
    return result;
}

static void finish(const char *event) {
    if (*lost) printf("lost %s\n", event);
    printf("kept %s %ld\n", event, *kept);
    *kept = *lost = 0;
}

// Members of a ring: each waits for the one before it, and then wakes the next.
static int pipes[MOST_MEMBERS][2];
static int nr_members;
static __thread long own;

static void turn_in_ring(int member) {
    char byte = 0;
    int next = (member + 1) % nr_members;
    own = member;
    for (int i = 0; i < ROUNDS; i++) {
        if (member > 0 || i > 0)
            keep(member * 100 + i, (struct call){SYS_read, pipes[member][0], (long)&byte, 1});
        keep(member * 100 + i + 7, (struct call){SYS_write, pipes[next][1], (long)&byte, 1});
        expect(own == member);
    }
}

static void *turn_as_thread(void *member) {
    turn_in_ring((int)(long)member);
    return NULL;
}

static void ring(const char *event, int nr_threads, int nr_processes) {
    pthread_t threads[MOST_MEMBERS];
    nr_members = nr_threads + nr_processes;
    for (int i = 0; i < nr_members; i++)
        if (pipe(pipes[i])) perror("pipe");
    fflush(stdout);
    for (int i = nr_threads; i < nr_members; i++)
        if (fork() == 0) {
            turn_in_ring(i);
            _exit(0);
        }
    for (int i = 1; i < nr_threads; i++) pthread_create(&threads[i], NULL, turn_as_thread, (void *)(long)i);
    if (nr_threads) turn_in_ring(0);
    for (int i = 1; i < nr_threads; i++) pthread_join(threads[i], NULL);
    while (wait(NULL) > 0) { }
    for (int i = 0; i < nr_members; i++) close(pipes[i][0]), close(pipes[i][1]);
    finish(event);
}

#define AS_HANDLER_LEAVES_IT 0x5a

static void handler(int number, siginfo_t *info, void *context) {
    struct _libc_fpstate *saved = ((ucontext_t *)context)->uc_mcontext.fpregs;
    struct registers interrupted = pattern(3);
    for (int i = 0; i < 16; i++) expect(memcmp(&saved->_xmm[i], interrupted.vector[i], 16) == 0);
    expect(saved->mxcsr == MXCSR);
    memset(&saved->_xmm[5], AS_HANDLER_LEAVES_IT, 16);
    keep(4, (struct call){SYS_getpid});
    (void)number, (void)info;
}

static void signals(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < ROUNDS / 10; i++) {
        struct call call = {SYS_kill, getpid(), SIGUSR1, .has_avx = has_avx};
        struct registers before = pattern(3), after;
        memset(&after, 0, sizeof(after));
        hold(&before, &after, &call);
        memset(before.vector[5], AS_HANDLER_LEAVES_IT, 16);
        check(&before, &after);
    }
    finish("signals");
}

static void forks(void) {
    fflush(stdout);
    for (int i = 0; i < ROUNDS / 10; i++) {
        long child = keep(i, (struct call){SYS_fork});
        if (child == 0) _exit(0);
        expect(waitpid(child, NULL, 0) == child);
    }
    finish("forks");
    // A child that borrows its parent's memory, and so the process in which it computes.
    for (int i = 0; i < ROUNDS / 10; i++) {
        struct registers before = pattern(i), of_child;
        long child = keep(i, (struct call){SYS_vfork, .child = &of_child});
        check(&before, &of_child);
        expect(waitpid(child, NULL, 0) == child);
    }
    finish("vforks");
}

static void failing_execs(void) {
    char *nothing[] = {NULL};
    for (int i = 0; i < ROUNDS / 10; i++)
        expect(keep(i, (struct call){SYS_execve, (long)"/is/not/there", (long)nothing, (long)nothing}) == -ENOENT);
    finish("failing_execs");
}

static void page_faults(void) {
    long bytes = ROUNDS * 4096L;
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < ROUNDS; i++) keep(i, (struct call){SYS_getpid, .touched = pages + i * 4096L});
    munmap(pages, bytes);
    finish("page_faults");
}

static void tracing(void) {
    long child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    struct user_fpregs_struct registers;
    memset(&registers, 0, sizeof(registers));
    registers.mxcsr = MXCSR_USUAL;
    registers.cwd = X87_CONTROL_USUAL;
    for (int i = 0; i < ROUNDS / 10; i++)
        expect(keep(i, (struct call){SYS_ptrace, PTRACE_SETFPREGS, child, 0, (long)&registers}) == 0);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) { }
    finish("tracing");
}

static void after_exec(void) {
    uint16_t control;
    asm volatile("fnstcw %0" : "=m"(control));
    expect(control == X87_CONTROL_USUAL && _mm_getcsr() == MXCSR_USUAL);
    finish("execs");
    fflush(stdout);
    if (getpid() == 1) reboot(RB_POWER_OFF);
    exit(0);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    has_avx = __builtin_cpu_supports("avx");
    kept = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    lost = kept + 1;
    if (count > 1 && strcmp(arguments[1], "after-exec") == 0) after_exec();
    ring("processes", 0, 3);
    ring("threads", 3, 0);
    ring("both", 2, 2);
    signals();
    forks();
    failing_execs();
    page_faults();
    tracing();
    char *words[] = {arguments[0], "after-exec", NULL}, *nothing[] = {NULL};
    keep(1, (struct call){SYS_execve, (long)arguments[0], (long)words, (long)nothing});
    finish("execs");
    return 1;
}
