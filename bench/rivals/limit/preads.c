// Reading pieces of a file with pread from several threads at once: what a device gives to random
// reads without a loader.

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct Job {
  int file;
  const int64_t* begins;
  const int64_t* sizes;
  int64_t count;
  int64_t largest;
  atomic_int_fast64_t next;
  atomic_int_fast64_t bytes;
};

static void* work(void* given) {
  struct Job* job = given;
  char* memory = malloc((size_t)job->largest);
  for (;;) {
    const int64_t i = atomic_fetch_add(&job->next, 1);
    if (memory == NULL || i >= job->count) break;
    const ssize_t got = pread(job->file, memory, (size_t)job->sizes[i], job->begins[i]);
    if (got > 0) atomic_fetch_add(&job->bytes, got);
  }
  free(memory);
  return NULL;
}

// Gives the bytes read; pieces are taken in their order by whichever thread is free.
int64_t read_pieces(int file, const int64_t* begins, const int64_t* sizes, int64_t count,
                    int64_t threads) {
  struct Job job = {.file = file, .begins = begins, .sizes = sizes, .count = count};
  for (int64_t i = 0; i < count; ++i) {
    if (sizes[i] > job.largest) job.largest = sizes[i];
  }
  pthread_t* workers = malloc((size_t)threads * sizeof *workers);
  int64_t started = 0;
  while (workers != NULL && started < threads &&
         pthread_create(&workers[started], NULL, work, &job) == 0) {
    ++started;
  }
  for (int64_t i = 0; i < started; ++i) pthread_join(workers[i], NULL);
  free(workers);
  return job.bytes;
}
