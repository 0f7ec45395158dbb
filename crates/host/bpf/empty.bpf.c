// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Nothing, where folios become dirty: what a program costs there by being there, which no program can cost less
 * than. For the benchmark alone.
 */
#include "floodline.bpf.h"

SEC("tp_btf/writeback_dirty_folio")
int on_dirty_folio(void *arguments)
{
	return arguments ? 0 : 1;
}
