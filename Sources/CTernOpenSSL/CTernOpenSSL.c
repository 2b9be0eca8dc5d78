#include "CTernOpenSSL.h"
