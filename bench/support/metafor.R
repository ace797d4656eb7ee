# Prints what tests/analysis/statistics/test_random_effects.py holds vmlab's random effects against.
# Debian: apt-get install --no-install-recommends r-cran-metafor; then: Rscript bench/support/metafor.R
suppressMessages(library(metafor))
cat("metafor", as.character(packageVersion("metafor")), "\n")

told <- function(name, dat) {
  for (test in c("knha", "adhoc")) {
    res <- rma(yi, vi, data = dat, method = "REML", test = test, control = list(threshold = 1e-12, maxiter = 1000))
    pred <- predict(res)
    figures <- c(res$beta, res$se, res$ci.lb, res$ci.ub, res$tau2, res$I2, res$QE, res$QEp, pred$pi.lb, pred$pi.ub)
    cat(name, test, sprintf("%.9g", figures), "\n")
  }
}

told("bcg", escalc(measure = "RR", ai = tpos, bi = tneg, ci = cpos, di = cneg, data = dat.bcg))
told("raudenbush", dat.raudenbush1985)
told("hackshaw", dat.hackshaw1998)
cat("yi", paste(dat.hackshaw1998$yi, collapse = ", "), "\nvi", paste(dat.hackshaw1998$vi, collapse = ", "), "\n")
cat("yi", paste(dat.raudenbush1985$yi, collapse = ", "), "\nvi", paste(dat.raudenbush1985$vi, collapse = ", "), "\n")
