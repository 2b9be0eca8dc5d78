#include "CTernHTTP2.h"
