/* A driver without a card: enough for cuDNN to compile engines and to load them, and nothing that runs. */
#define NO_DEVICE 100 /* CUDA_ERROR_NO_DEVICE */
#define REFUSES(name) int name(void) { return NO_DEVICE; }
#define DOES_NOTHING(name) int name(void) { return 0; }
/* What makes something says that it is made, at an address that nobody reads. */
static int made;
#define MAKES(name) int name(void **it) { *it = &made; return 0; }

MAKES(cuKernelGetFunction)
MAKES(cuLibraryGetKernel)
MAKES(cuLibraryLoadData)
MAKES(cuLibraryLoadFromFile)
MAKES(cuModuleGetFunction)
MAKES(cuModuleLoadData)

DOES_NOTHING(cuKernelSetAttribute)
DOES_NOTHING(cuLibraryUnload)
DOES_NOTHING(cuModuleUnload)

int cuKernelGetAttribute(int *value) { *value = 0; return 0; }

REFUSES(cuCtxGetCurrent)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxPushCurrent)
REFUSES(cuDeviceGet)
REFUSES(cuDeviceGetCount)
REFUSES(cuDriverGetVersion)
REFUSES(cuGetErrorName)
REFUSES(cuGetErrorString)
REFUSES(cuGetProcAddress)
REFUSES(cuGetProcAddress_v2)
REFUSES(cuInit)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLinkAddData)
REFUSES(cuLinkComplete)
REFUSES(cuLinkCreate)
REFUSES(cuLinkDestroy)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuStreamGetCtx)
REFUSES(cuTensorMapEncodeIm2col)
REFUSES(cuTensorMapEncodeTiled)
