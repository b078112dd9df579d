"""Words that a kernel may not use as names because a target's language has them: the reserved words of WGSL (W3C, "WebGPU Shading
Language", Keyword and Token Summary), GLSL 4.60 (section 3.6), OpenCL C 1.2 (6.1.9), C++20 and the Metal Shading Language."""

_WGSL = """alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop
override requires return struct switch true var while NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto
await become binding_array cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment concept
const_cast consteval constexpr constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export
extends extern external fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements import inline
instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline
nointerpolation non_coherent noncoherent noperspective null nullptr of operator package packoffset partition pass patch pixelfragment
precise precision premerge priv protected pub public readonly ref regardless register reinterpret_cast require resource restrict self
set shared sizeof smooth snorm static static_assert static_cast std subroutine super target template this thread_local throw trait try
type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield
array atomic mat2x2 ptr sampler vec2 vec3 vec4 f16 f32 i32 u32 bool"""
_GLSL = """attribute const uniform varying buffer shared coherent volatile restrict readonly writeonly atomic_uint layout centroid flat
smooth noperspective patch sample invariant precise break continue do for while switch case default if else subroutine in out inout int
void bool true false float double discard return struct uint lowp mediump highp precision common partition active asm class union enum
typedef template this resource goto inline noinline public static extern external interface long short half fixed unsigned superp input
output hvec2 hvec3 hvec4 fvec2 fvec3 fvec4 filter sizeof cast namespace using main"""
_OPENCL = """char uchar short ushort int uint long ulong float double half quad complex imaginary bool image2d_t event_t sampler_t global
local constant private generic kernel read_only write_only read_write size_t ptrdiff_t pipe uniform"""
_CPP = """and and_eq bitand bitor char8_t char16_t char32_t compl not not_eq or or_eq private protected signed wchar_t xor xor_eq int
float double long short char void"""
_METAL = """device constant thread threadgroup threadgroup_imageblock kernel vertex fragment ray_data object_data metal half"""
_DIALECT = """LANES BUFFERS PARAMS SHARED FUNCTION ARG BEGIN END MAIN END_MAIN VAR LET ARRAY TABLE P LANE GROUP_X GROUP_Y GROUP_Z BARRIER
Params Step SharedMemory half_value half_code fused quotient root dot4 select divide fast checked"""

RESERVED = {}
for _language, _words in (("the dialect", _DIALECT), ("Metal", _METAL), ("C++", _CPP), ("OpenCL C", _OPENCL), ("GLSL", _GLSL), ("WGSL", _WGSL)):
    for _word in _words.split():
        RESERVED[_word] = _language

# Variables may hide these; functions of these names are defined twice.
BUILTIN_FUNCTIONS = dict.fromkeys("""abs acos asin atan ceil clamp cos cosh cross degrees distance dot exp exp2 floor fma fract frexp
inversesqrt isinf isnan ldexp length log log2 max min mix mod modf normalize pow radians reflect round sign sin sinh smoothstep sqrt step
tan tanh trunc mad mad24 mul24 rint rsqrt rotate popcount clz hypot fmax fmin fabs remainder any all not equal transpose inverse
determinant bitcount noise1 barrier select""".split(), "GLSL or OpenCL C")
