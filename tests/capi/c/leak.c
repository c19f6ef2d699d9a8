/* Leaks a text of the library, to show that the search for leaks finds one. */
#include "check.h"

int main(int argc, char **argv) {
	a3s_buf stats = {NULL, 0};
	begin(argc, argv);
	OK(a3s_stats(0, &stats));
	memset(&stats, 0, sizeof stats);
	return 0;
}
