/* How every model begins. */
#include "@NAME@.h"

#include "gbfl.h"
$when:double{

#if DBL_MANT_DIG != 53
#error "@NAME@: double is not IEEE binary64 here (as on AVR): emit the model with --set c.dtype=float32"
#endif
$}
