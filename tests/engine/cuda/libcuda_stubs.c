/* A driver without a card: enough for cuDNN to compile and load engines, but not to run them. */
#define NO_DEVICE 100 /* CUDA_ERROR_NO_DEVICE */
#define REFUSES(name) int name(void) { return NO_DEVICE; }
#define DOES_NOTHING(name) int name(void) { return 0; }
/* Functions that create an object succeed, with an address that is never read. */
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
