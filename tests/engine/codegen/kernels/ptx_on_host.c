/* What LLVM IR for a card calls, for a processor: behind cuda_on_host.c, whose threads these are. */
#define NUMBER(name, value) int name(void) { return (int)(value); }
NUMBER(sreg_tid_x, THREAD_X)
NUMBER(sreg_tid_y, THREAD_Y)
NUMBER(sreg_ntid_x, WIDE)
NUMBER(sreg_ntid_y, HIGH)
NUMBER(sreg_ctaid_x, BLOCK_X)
NUMBER(sreg_ctaid_y, BLOCK_Y)
NUMBER(sreg_nctaid_x, GRID_X)
NUMBER(sreg_nctaid_y, GRID_Y)

static int shown_words[WARP];

/* Operands as the PTX ISA has them, of shfl.sync: all threads take part, the last lane of a warp is 31, and bits 8 to 12
   of the bounds tell how wide a group is. */
static int word_from_lane(int members, int value, int lane, int bounds) {
  if (members != -1 || (bounds & 0xff) != WARP - 1) abort();
  shown_words[now] = value;
  meet();
  const int found = shown_words[lane];
  meet();
  return found;
}

int shfl_sync_down(int members, int value, int by, int bounds) {
  const int width = WARP - (bounds >> 8);
  return word_from_lane(members, value, now % width + by < width ? now + by : now, bounds);
}

int shfl_sync_idx(int members, int value, int lane, int bounds) {
  const int width = WARP - (bounds >> 8);
  return word_from_lane(members, value, now - now % width + lane, bounds);
}
