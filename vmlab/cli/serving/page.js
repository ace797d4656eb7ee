// Keys go to the console as soon as the page is open.
addEventListener("load", () => setTimeout(() => document.querySelector("textarea")?.focus()));
