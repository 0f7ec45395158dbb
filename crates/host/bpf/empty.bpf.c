// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * An empty program at the tracepoint of dirtied folios, for the benchmark only: the least that any program costs there.
 */
#include "floodline.bpf.h"

SEC("tp_btf/writeback_dirty_folio")
int on_dirty_folio(void *arguments)
{
	return arguments ? 0 : 1;
}
