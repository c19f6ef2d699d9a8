/* The second translation unit of every test: includes the header twice and links. */
#include "a3s.h"
#include "a3s.h"

#ifdef __cplusplus
extern "C" {
#endif
uint32_t second_abi_version(void);
int second_closes(a3s_handle handle);
#ifdef __cplusplus
}
#endif

uint32_t second_abi_version(void) { return A3S_ABI_VERSION; }

int second_closes(a3s_handle handle) { return a3s_close(handle, -1) == A3S_OK; }
