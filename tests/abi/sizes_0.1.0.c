#include <gatefold/gatefold.h>

// The program that this is linked into was compiled against the headers of 0.1.0, and not against today's.
_Static_assert(sizeof(gatefold_desc) == 112, "gatefold_desc isn't that of 0.1.0");
_Static_assert(sizeof(gatefold_args) == 80, "gatefold_args isn't that of 0.1.0");
