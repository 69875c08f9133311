// A libcuda.so.1 that fails as it is told: FAKE_VERSION is the CUDA version of the driver (13000 is
// 13.0), FAKE_STATUS what its initialization answers.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags) {
  (void)flags;
  return atoi(getenv("FAKE_STATUS"));
}

int cuDriverGetVersion(int* version) {
  *version = atoi(getenv("FAKE_VERSION"));
  return 0;
}

static int not_initialized(void) { return 3; }

int cuGetExportTable(const void** table, const void* id) {
  (void)id;
  *table = NULL;
  return not_initialized();
}

int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                        int* status) {
  (void)version;
  (void)flags;
  if (status != NULL) *status = 0;
  *function = (void*)not_initialized;
  if (strcmp(symbol, "cuInit") == 0) *function = (void*)cuInit;
  if (strcmp(symbol, "cuDriverGetVersion") == 0) *function = (void*)cuDriverGetVersion;
  if (strcmp(symbol, "cuGetExportTable") == 0) *function = (void*)cuGetExportTable;
  if (strncmp(symbol, "cuGetProcAddress", 16) == 0) *function = (void*)cuGetProcAddress_v2;
  return 0;
}

int cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
