// The dialect of the generator: a kernel text becomes one line of facts that scripts/build/gpu_kernels.py reads (lanes, buffers,
// parameters, whether it has a barrier). The rest of the text stays unchanged and is ignored.
#ifndef SHARED
#define SHARED(S)
#endif
#define FACT_IN(i, T, n) in i T n ;
#define FACT_OUT(i, T, n) out i T n ;
#define FACT_PARAM(T, n) T n ;
#define FACT_SHARED(T, n, k) T n k ;
FACTS_BEGIN KERNEL_NAME | LANES | BUFFERS(FACT_IN, FACT_OUT) | PARAMS(FACT_PARAM) | SHARED(FACT_SHARED) FACTS_END
#define BARRIER FACT_BARRIER
#define TREE_64(T, name, J, value, m) FACT_TREE(64, m); VAR(T, name) = J(value, m[0u])
#define TREE_16(T, name, J, value, m) FACT_TREE(16, m); VAR(T, name) = J(value, m[0u])
#define TREE_8(T, name, J, value, m) FACT_TREE(8, m); VAR(T, name) = J(value, m[0u])
#define PLUS(a, b) ((a) + (b))
#define LET_UNIFORM(T, n, value) FACT_BARRIER; FACT_UNIFORM(T, n) = value
