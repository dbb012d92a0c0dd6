package pages

import (
	"encoding/json"
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// systemView is the page of the system.
type systemView struct {
	Body   json.RawMessage `json:"system"`
	System systemAnswer    `json:"-"`
}

// systemAnswer is what the page itself reads of the API's answer.
type systemAnswer struct {
	Venues []struct {
		Slug, State         string
		Connections         int
		Markets             int
		LastEventAgeSeconds float64
	}
	Path []struct {
		Kind, Name string
		LagSeconds float64
	}
}

// sendSystem answers /system: what is read, and how far what is made of it has come.
func (u *Unit) sendSystem(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "System")
	if !ok {
		return err
	}
	v := &systemView{}
	var answer struct{ Data systemAnswer }
	if v.Body, err = u.ask(r, "getSystem", nil, &answer); err != nil {
		return u.fail(r.ctx, err)
	}
	v.System = answer.Data
	return u.show(r.ctx, http.StatusOK, view{Page: pageSystem, Title: "System", About: "What this process reads, and how far what it makes of it has come.", Data: v, System: &v.System})
}
