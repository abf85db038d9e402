package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.http.HttpHeaders;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/** An HTTP response as received. Its methods throw MalformedAnswerException for an invalid response. */
record Reply(int status, HttpHeaders headers, byte[] body) {
    /** The JSON object of a response, and the tensors beside it. */
    record Parts(ObjectNode fields, Map<String, Tensor> beside) {}

    private String media() {
        return headers.firstValue("Content-Type").orElse("").split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
    }

    private boolean isFile() {
        return media().equals(Media.SAFETENSORS) || media().equals(Media.BYTES);
    }

    /** Returns this response, or throws for a problem report or a redirect. */
    Reply checked() {
        if (status >= 400) {
            throw RefusalException.of(problem(), "");
        }
        if (status != 200 && status != 201 && status != 304) {
            throw new MalformedAnswerException("unexpected status " + status + ": not a gradserve response");
        }
        return this;
    }

    /** Reads the problem report of the response. A report has a code. */
    private Problem problem() {
        if (media().equals(Media.PROBLEM) || media().equals(Media.JSON)) {
            try {
                ObjectNode report = Json.object(body);
                Json.text(report, "code");
                return Problem.read(report, status, retryAfter());
            } catch (InputException noReport) {
                // The status is enough.
            }
        }
        return Problem.of(status, retryAfter());
    }

    /** Reads a whole number of seconds and ignores any other value. */
    private Optional<Duration> retryAfter() {
        return headers.firstValue("Retry-After").map(String::strip).filter(stated -> stated.matches("[0-9]+"))
            .map(stated -> Duration.ofSeconds(stated.length() > 9 ? Integer.MAX_VALUE : Integer.parseInt(stated)));
    }

    ObjectNode object() {
        if (!media().equals(Media.JSON)) {
            throw new MalformedAnswerException(
                "expected a response of media type " + Media.JSON + ", got '" + media() + "'");
        }
        return MalformedAnswerException.unless(() -> Json.object(body));
    }

    Parts parts() {
        if (!isFile()) {
            return new Parts(object(), Map.of());
        }
        Safetensors file = Safetensors.read(ByteBuffer.wrap(body));
        String response = file.metadata().getOrDefault("response", "");
        return new Parts(MalformedAnswerException.unless(() -> Json.object(response)), file.tensors());
    }

    /** Reads a resident tensor. */
    ResidentTensor tensor(String name) {
        return isFile() ? tensorInFile(name) : MalformedAnswerException.unless(() -> {
            ObjectNode fields = object();
            return resident(name, Json.text(fields, "etag"), TensorJson.decoded(Json.member(fields, "tensor")));
        });
    }

    private ResidentTensor tensorInFile(String name) {
        Map<String, Tensor> tensors = Safetensors.read(ByteBuffer.wrap(body)).tensors();
        if (tensors.size() != 1) {
            throw new MalformedAnswerException("expected exactly one tensor in the response, got " + tensors.size());
        }
        String etag = headers.firstValue("ETag").orElse("").replaceFirst("^W/", "").replace("\"", "");
        return resident(name, etag, tensors.values().iterator().next());
    }

    private static ResidentTensor resident(String name, String etag, Tensor tensor) {
        return new ResidentTensor(Resident.of(name, etag, tensor), tensor);
    }
}
