// Sets the colours that were chosen before, before anything is drawn.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("longtail.theme");
  } catch {
    // a browser that keeps nothing follows the system
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
