/* cublas_stub.c - a library with cuBLAS's names, for cublas_load_test.c: each function gives
 * its number. With LACKING one is not there. */
int cublasCreate_v2(void);
int cublasDestroy_v2(void);
int cublasGetVersion_v2(void);
int cublasSetStream_v2(void);
int cublasSetWorkspace_v2(void);
int cublasSetMathMode(void);
int cublasGemmEx(void);

int cublasCreate_v2(void)
{
    return 1;
}
int cublasDestroy_v2(void)
{
    return 2;
}
int cublasGetVersion_v2(void)
{
    return 3;
}
int cublasSetStream_v2(void)
{
    return 4;
}
int cublasSetWorkspace_v2(void)
{
    return 5;
}
int cublasSetMathMode(void)
{
    return 6;
}
#ifndef LACKING
int cublasGemmEx(void)
{
    return 7;
}
#endif
