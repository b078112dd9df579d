// Generated Metal text includes this; what it uses is in metal_stdlib.
#pragma once
