package producers

import "net/http"

// RefusedForGood means that a server which answers with this HTTP status would refuse this request again, and not others:
// it does not mean a time-out, a request that came too early or too many, nor one that whoever asks is refused, for his
// key, his plan or his address.
func RefusedForGood(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusTeapot,
		http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired:
		return false
	}
	return status >= 400 && status < 500
}
