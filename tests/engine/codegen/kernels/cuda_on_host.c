/* What the text of a CUDA kernel is written in, for a processor: blocks one after the other, and in each the warps one
   after the other, whose threads are coroutines. Where they meet, each goes on when all have come. */
#include <stdlib.h>
#include <ucontext.h>

#define KERNEL void
#define DEVICE static
#define GIVEN const void* given
#define TABLE given
#define GRID_X grid_x
#define GRID_Y grid_y
#define BLOCK_X block_x
#define BLOCK_Y block_y
#define WIDE wide
#define HIGH high
#define THREAD_X thread_x[now]
#define THREAD_Y thread_y[now]
#define FROM_ABOVE(value, by, width) from_lane(value, now % (width) + (by) < (width) ? now + (by) : now)
#define FROM_FIRST(value, width) from_lane(value, now - now % (width))

enum { WARP = 32, STACK = 1 << 18 };
static long long grid_x, grid_y, block_x, block_y, wide, high;
static int now, thread_x[WARP], thread_y[WARP], meetings[WARP], ended[WARP];
static ucontext_t scheduler, threads[WARP];
static char* stacks[WARP];
static F shown[WARP];

static void meet(void) {
  meetings[now]++;
  swapcontext(&threads[now], &scheduler);
}

static F from_lane(F value, int lane) {
  shown[now] = value;
  meet();
  const F found = shown[lane];
  meet();
  return found;
}

static void (*kernel_now)(const void*);
static const void* table_now;

static void thread_body(void) {
  kernel_now(table_now);
  ended[now] = 1;
  swapcontext(&threads[now], &scheduler);
}

/* 0, or 1 where the threads of a warp did not meet equally often: on a card they would wait for ever. */
static int run_warp(int first, int past) {
  const int count = past - first;
  for (int k = 0; k < count; k++) {
    thread_x[k] = (first + k) % wide, thread_y[k] = (first + k) / wide, meetings[k] = ended[k] = 0;
    if (!stacks[k]) stacks[k] = malloc(STACK);
    getcontext(&threads[k]);
    threads[k].uc_stack.ss_sp = stacks[k];
    threads[k].uc_stack.ss_size = STACK;
    makecontext(&threads[k], thread_body, 0);
  }
  for (int left = count; left;) {
    left = 0;
    for (int k = 0; k < count; k++) {
      if (ended[k]) continue;
      now = k;
      swapcontext(&scheduler, &threads[k]);
      left += !ended[k];
    }
    for (int k = 1; k < count; k++) if (meetings[k] != meetings[0] || ended[k] != ended[0]) return 1;
  }
  return 0;
}

int launch(void (*kernel)(const void*), const long long* extents, const void* table) {
  grid_x = extents[0], grid_y = extents[1], wide = extents[2], high = extents[3];
  kernel_now = kernel, table_now = table;
  for (block_y = 0; block_y < grid_y; block_y++)
    for (block_x = 0; block_x < grid_x; block_x++)
      for (int first = 0; first < wide * high; first += WARP)
        if (run_warp(first, first + WARP < wide * high ? first + WARP : (int)(wide * high))) return 1;
  return 0;
}
