package example.gradserve;

/** Media types of the API. */
final class Media {
    static final String JSON = "application/json";
    static final String PROBLEM = "application/problem+json";
    static final String SAFETENSORS = "application/vnd.safetensors";
    static final String BYTES = "application/octet-stream";

    private Media() {}
}
