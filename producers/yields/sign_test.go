package yields

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/poll"
)

// The examples of the documentation of Binance and Kraken.
func TestSignaturesAreThoseOfTheDocumentation(t *testing.T) {
	r, err := signBinance([]string{"key", "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j"}, poll.Request{
		Path: "/api/v3/order?symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000",
	}, time.UnixMilli(1499827319559))
	if err != nil {
		t.Fatal(err)
	}
	const sealed = "&timestamp=1499827319559&signature=c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71"
	if !strings.HasSuffix(r.Path, sealed) {
		t.Errorf("Binance is asked for %s, want it to end in %s", r.Path, sealed)
	}
	private, err := base64.StdEncoding.DecodeString("kQH5HW/8p1uGOVjbgWA7FunAmGO8lsSUXNsu3eow76sz84Q18fWxnyRzBHCd3pd5nE9qa99HAZtuZuj6F1huXg==")
	if err != nil {
		t.Fatal(err)
	}
	const body = "nonce=1616492376594&ordertype=limit&pair=XBTUSD&price=37500&type=buy&volume=1.25"
	got := krakenSignature(private, "/0/private/AddOrder", "1616492376594", body)
	if want := "4/dpxb3iT4tp/ZCVEwSnEsLxx0bqyhLpdfOpc6fn7OR8+UClSV5n9E6aSS8MPtnRfp32bAb0nmbRn6H8ndwLUQ=="; got != want {
		t.Errorf("signature for Kraken %s, want %s", got, want)
	}
}

func TestSignedRequestsCarryWhatTheirSourcesAskFor(t *testing.T) {
	now := time.UnixMilli(1767571200123)
	r, err := signKraken([]string{"key", "c2VjcmV0"}, poll.Request{Path: "/0/private/Earn/Strategies", Body: `{"limit":500}`}, now)
	if err != nil || r.Body != `{"limit":500,"nonce":"1767571200123000"}` || r.Header["API-Sign"] == "" {
		t.Errorf("Kraken is sent %+v, %v", r, err)
	}
	r, err = signKuCoin([]string{"key", "secret", "phrase"}, poll.Request{Path: "/api/v1/earn/saving/products"}, now)
	if err != nil || r.Header["KC-API-TIMESTAMP"] != "1767571200123" ||
		r.Header["KC-API-PASSPHRASE"] != "+n/mrTSNU7CrscsmDK22syRThdivpLcovw6amkVEEug=" || r.Header["KC-API-SIGN"] == "" || r.Header["KC-API-KEY-VERSION"] != "2" {
		t.Errorf("KuCoin is sent %+v, %v", r, err)
	}
	for _, s := range List() {
		if s.Sign == nil {
			continue
		}
		if s.Off == "" || s.KeyHeader == "" {
			t.Errorf("%s signs its requests, and is asked without a key", s.Slug)
		}
		if _, err := s.Sign([]string{"key"}, poll.Request{Path: "/"}, now); err == nil {
			t.Errorf("%s signs without a secret", s.Slug)
		}
	}
}
