// A page that is narrow when it is opened has small letters, each 0.6 em wide, rather than less than the 80 columns of a terminal.
addEventListener("DOMContentLoaded", () => {
  const { dataset } = document.querySelector("#terminal");
  dataset.fontSize = Math.max(6, Math.min(dataset.fontSize, Math.floor(innerWidth / (80 * 0.6))));
});
// Keys go to the console as soon as the page is open.
addEventListener("load", () => setTimeout(() => document.querySelector("textarea")?.focus()));
