// SPDX-License-Identifier: Apache-2.0
/*
 * Restores the extended state of another process by User-mode Linux's own code, arch/x86/um/os-Linux/registers.c,
 * built to keep less of it than this machine has (FP_SIZE). Prints what restoring returned, and whether the
 * process then has its SSE registers again.
 */
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registers.h"

static char now[65536];

static size_t state_of(int pid)
{
	struct iovec iov = { .iov_base = now, .iov_len = sizeof(now) };

	memset(now, 0, sizeof(now));
	return ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) ? 0 : iov.iov_len;
}

int main(void)
{
	static unsigned long kept[FP_SIZE];
	static char before[512];
	int result, pid = fork();

	if (pid == 0) {
		double values[] = { 1.5, 2.5 };

		ptrace(PTRACE_TRACEME, 0, 0, 0);
		__asm__ volatile("movupd %0, %%xmm5" : : "m"(values) : "xmm5");
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	arch_init_registers(pid);
	printf("bytes %zu %zu\n", state_of(pid), sizeof(kept));
	memcpy(before, now, sizeof(before));
	get_fp_registers(pid, kept);
	result = put_fp_registers(pid, kept);
	state_of(pid);
	printf("restored %d\nsame %d\n", result, !memcmp(before, now, sizeof(before)));
	/* Others than those that the process had before come back too. */
	memset((char *)kept + 160 + 5 * 16, 0x3f, 16);
	put_fp_registers(pid, kept);
	state_of(pid);
	printf("changed %d\n", now[160 + 5 * 16] == 0x3f);
	kill(pid, SIGKILL);
	return 0;
}
